package quota_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

// brief is a quota as name/unit/limit/remaining/window/seconds to its reset.
func brief(q quota.Quota) string {
	limit, left, reset := "?", "?", "?"
	if q.HasLimit {
		limit = fmt.Sprint(q.Limit)
	}
	if q.HasRemaining {
		left = fmt.Sprint(q.Remaining)
	}
	if !q.Reset.IsZero() {
		reset = fmt.Sprint(q.Reset.Sub(noon).Seconds())
	}
	return fmt.Sprint(q.Name, "/", q.Unit, "/", limit, "/", left, "/", q.Window, "/", reset)
}

func TestDialects(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		header   []string
		want     []string
	}{
		"unknown next to a number": {"", []string{"X-RateLimit-Limit", "-1, 100"}, []string{"x-ratelimit/requests/100/?/0s/?"}},
		"a number next to unknown": {"", []string{"X-RateLimit-Limit", "100, -1"}, []string{"x-ratelimit/requests/100/?/0s/?"}},
		"two negatives":            {"", []string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "-3, -5"}, []string{"x-ratelimit/requests/9/0/0s/?"}},
		"one window twice":         {"", []string{"RateLimit-Limit", "9;w=60, 7;w=60, 90;w=3600"}, []string{"ratelimit/requests/7/?/1m0s/?", "ratelimit;w=3600/requests/90/?/1h0m0s/?"}},
		"periods": {"", []string{
			"X-RateLimit-Limit-Tokens-Day", "5", "X-RateLimit-Limit-Second", "1", "X-RateLimit-Limit-Week", "7", "X-RateLimit-Limit-Month", "30",
		}, []string{"month/requests/30/?/0s/?", "second/requests/1/?/1s/?", "tokens-day/tokens/5/?/24h0m0s/?", "week/requests/7/?/168h0m0s/?"}},
		"subscription": {"anthropic", []string{
			"Anthropic-RateLimit-Unified-5h-Status", "rejected", "Anthropic-RateLimit-Unified-5h-Reset", "1773144060",
			"Anthropic-RateLimit-Unified-Overage-Status", "rejected",
		}, []string{"unified-5h/requests/?/0/5h0m0s/60"}},
		"units": {"", []string{"RateLimit-Policy", `a;q=1;w=5;qu="requests", b;q=2;qu="output-tokens", c;q=3;qu="bytes", d;q=4;pk="x", (e);q=5, 6.5;q=1`},
			[]string{"a/requests/1/?/5s/?", "b/tokens/2/?/0s/?", "c/points/3/?/0s/?", "d/requests/4/?/0s/?"}},
		"partition keys": {"", []string{"RateLimit", `"a";r=1;pk=:eA==:, "a";r=2;pk=:eQ==:`}, []string{"a@eA==/requests/?/1/0s/?", "a@eQ==/requests/?/2/0s/?"}},
		"policies alone": {"", []string{"RateLimit-Policy", "100;w=60, 0;w=5, 5"}, []string{"ratelimit;w=60/requests/100/?/1m0s/?"}},
		"broken policy":  {"", []string{"RateLimit-Policy", `"a";q=1,`, "RateLimit-Limit", "5"}, []string{"ratelimit/requests/5/?/0s/?"}},
		"0 left of -1":   {"", []string{"X-RateLimit-Limit", "-1", "X-RateLimit-Remaining", "0"}, []string{"x-ratelimit/requests/?/0/0s/?"}},
		"reset time":     {"", []string{"RateLimit-ResetTime", "Tue, 10 Mar 2026 12:00:30 GMT"}, []string{"ratelimit/requests/?/?/0s/30"}},
		"relative first": {"", []string{"X-RateLimit-Reset", "1773144060", "X-RateLimit-Reset-After", "2.5"}, []string{"x-ratelimit/requests/?/?/0s/2.5"}},
	} {
		h := make(http.Header)
		for i := 0; i < len(c.header); i += 2 {
			h.Add(c.header[i], c.header[i+1])
		}
		r := quota.Parse(quota.Response{Provider: c.provider, Status: 200, Header: h, Now: noon})
		var got []string
		for _, q := range r.Quotas {
			got = append(got, brief(q))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// aws/aws-sdk-go-v2 takes the code from the header first.
func TestAWSErrorType(t *testing.T) {
	for value, want := range map[string]bool{
		"ThrottlingException:http://internal.amazon.com/coral/": true,
		"com.amazonaws.lambda#TooManyRequestsException":         true,
		"ValidationException":                                   false,
	} {
		if r := parse(400, "", "X-Amzn-ErrorType", value); r.Throttled != want {
			t.Errorf("%s: %+v", value, r)
		}
	}
}

func TestJSONSeconds(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"retry_after":1.5e1}`: 15 * time.Second, `{"retry_after":1e999}`: quota.MaxDelay,
		`{"retry_after":-1e999}`: none, `{"retry_after":-0}`: 0, `{"retry_after":1e-999}`: 0,
	} {
		r := parse(429, body)
		got := none
		if r.HasRetryAfter {
			got = r.RetryAfter
		}
		if got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
