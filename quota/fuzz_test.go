package quota_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{
		"120", "1.5", "1m30s", "99999999999999999999", "5, 10", "Tue, 10 Mar 2026 12:00:30 GMT",
		"Tuesday, 10-Mar-26 12:00:30 GMT", "Tue Mar 10 12:00:30 2026", "-1", "NaN", "\"30\"", "Wednesday, 29-Feb-00 00:00:60 Z",
	} {
		f.Add(v, v, "750", "Tue, 10 Mar 2026 12:05:00 GMT", int64(1773144000))
	}
	f.Fuzz(func(t *testing.T, first, second, ms, date string, now int64) {
		h := http.Header{"Retry-After": {first, second}, "Retry-After-Ms": {ms}, "Date": {date}, "Age": {ms}}
		at := time.Unix(now%(1<<37), 0)
		delay, ok := quota.RetryAfter(h, at)
		checkDelay(t, delay, ok)
		if again, ok2 := quota.RetryAfter(h, at); again != delay || ok2 != ok {
			t.Errorf("%v, then %v", delay, again)
		}
		alone, valid := quota.RetryAfter(http.Header{"Retry-After": {first}}, at)
		joined, _ := quota.RetryAfter(http.Header{"Retry-After": {first, "7"}}, at)
		if valid && joined < alone {
			t.Errorf("a further line shortened %v to %v", alone, joined)
		}
	})
}

func checkDelay(t *testing.T, d time.Duration, ok bool) {
	t.Helper()
	if d < 0 || d > quota.MaxDelay || !ok && d != 0 || d%time.Millisecond != 0 {
		t.Errorf("delay %v, %v", d, ok)
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range readVectors(f) {
		var head strings.Builder
		for name, lines := range v.Headers {
			for _, line := range lines {
				head.WriteString(name + ": " + line + "\n")
			}
		}
		f.Add(v.Provider, v.Status, head.String(), v.Body)
	}
	f.Fuzz(func(t *testing.T, provider string, status int, head, body string) {
		h := make(http.Header)
		for line := range strings.SplitSeq(head, "\n") {
			name, value, _ := strings.Cut(line, ":")
			h[name] = append(h[name], value)
		}
		r := quota.Parse(quota.Response{Provider: provider, Status: status, Header: h, Body: []byte(body), Now: noon})
		checkDelay(t, r.RetryAfter, r.HasRetryAfter)
		for i, q := range r.Quotas {
			switch {
			case q.Limit < 0, q.Remaining < 0, q.Window < 0,
				!q.HasLimit && q.Limit != 0, !q.HasRemaining && q.Remaining != 0,
				q.HasLimit && q.Remaining > q.Limit,
				!q.Reset.IsZero() && (q.Reset.Before(noon) || q.Reset.After(noon.Add(quota.MaxDelay))),
				!q.HasLimit && !q.HasRemaining && q.Reset.IsZero(),
				i > 0 && q.Name < r.Quotas[i-1].Name:
				t.Errorf("%+v", q)
			}
		}
		var s quota.State
		s.Merge(r, noon, noon)
		s.Merge(r, noon, noon.Add(time.Second))
		if len(s.Quotas(noon)) > len(r.Quotas) || s.ExhaustedUntil(noon).After(noon.Add(quota.MaxDelay)) {
			t.Errorf("%+v", s.Quotas(noon))
		}
	})
}
