package runner

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/metehttp"
	"github.com/metehq/mete/quota"
)

func answer(method string, status int, body string, header ...string) *exchanged {
	h := http.Header{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	x := &exchanged{status: status, header: h}
	x.attempt = metehttp.Attempt{
		Request: &http.Request{Method: method}, Response: &http.Response{StatusCode: status, Header: h},
		Body: []byte(body), Wire: &metehttp.Wire{}, Replayable: true,
	}
	return x
}

// What a rule says wins over what is known, in both directions, and decides
// what becomes of the request.
func TestRuleDecides(t *testing.T) {
	const spent = `{"error":{"code":"insufficient_quota"}}`
	const limit = `{"status":"OVER_QUERY_LIMIT"}`
	for _, c := range []struct {
		name string
		x    *exchanged
		as   classify.Kind // none is no rule
		kind record.Kind
		want string // Throttled, Answered, rePeat, Terminal, Err
	}{
		{"nothing known", answer("GET", 200, `{}`), "", "", "A"},
		{"a limit in the body", answer("POST", 200, limit), "", record.RateLimited, "TPE"},
		{"the same, being data", answer("POST", 200, limit), classify.OK, "", "A"},
		{"a spent quota", answer("GET", 429, spent), "", record.QuotaExhausted, "TXE"},
		{"the same, to be waited for", answer("GET", 429, spent), classify.RateLimited, record.RateLimited, "TPE"},
		{"a spent quota, by rule", answer("GET", 200, `{}`), classify.QuotaExhausted, record.QuotaExhausted, "AXE"},
		{"overloaded", answer("POST", 200, `{}`), classify.Overloaded, record.Overloaded, "TPE"},
		{"a soft 500 of a GET", answer("GET", 200, `{}`), classify.ServerError, record.HTTP5xx, "PE"},
		{"a soft 500 of a POST", answer("POST", 200, `{}`), classify.ServerError, record.HTTP5xx, "E"},
		{"a 404 that is fine", answer("GET", 404, ``), classify.OK, "", "A"},
		{"a 429 that is final", answer("GET", 429, ``), classify.ClientError, record.HTTP4xx, "AE"},
		{"a 500 that means 401", answer("GET", 500, ``), classify.Auth, record.Auth, "AE"},
		{"a header forbids this one", answer("GET", 429, ``, "X-Should-Retry: false"), "", record.RateLimited, "TE"},
		{"403 with a delay", answer("GET", 403, ``, "Retry-After: 3"), "", record.RateLimited, "TPE"},
	} {
		p := &provider{known: known{spec: &Spec{}}}
		if c.as != "" {
			p.spec.Classify = classify.Rules{{As: c.as}}
		}
		(&run{}).conclude(p, c.x)
		v, got := c.x.verdict, ""
		for _, f := range []struct {
			name string
			set  bool
		}{{"T", v.Throttled}, {"A", v.Answered}, {"P", v.Repeat}, {"X", v.Terminal}, {"E", v.Err != nil}} {
			if f.set {
				got += f.name
			}
		}
		if got != c.want || v.kind != c.kind {
			t.Errorf("%s: got %s %q, want %s %q", c.name, got, v.kind, c.want, c.kind)
		}
	}
	x := answer("GET", 200, `{}`, "Retry-After: 7")
	(&run{}).conclude(&provider{known: known{spec: &Spec{Classify: classify.Rules{{As: classify.RateLimited}}}}}, x)
	if !x.verdict.Hinted || x.verdict.RetryAfter.Seconds() != 7 {
		t.Errorf("the delay of a throttled 200: %v %v", x.verdict.Hinted, x.verdict.RetryAfter)
	}
}

func TestRetryOn(t *testing.T) {
	failed := func(err error) *exchanged {
		x := answer("GET", 0, "")
		x.attempt.Response, x.attempt.Err, x.attempt.Body = nil, err, nil
		return x
	}
	for _, c := range []struct {
		on   string
		x    func() *exchanged
		want bool
	}{
		{"503", func() *exchanged { return answer("GET", 503, "") }, true},
		{"503", func() *exchanged { return answer("GET", 502, "") }, false},
		{"5xx", func() *exchanged { return answer("GET", 502, "") }, true},
		{"5xx", func() *exchanged { return answer("POST", 502, "") }, false}, // narrows, never adds
		{"404", func() *exchanged { return answer("GET", 404, "") }, false},
		{"429", func() *exchanged { return answer("GET", 429, "") }, true},
		{"5xx", func() *exchanged { return answer("GET", 429, "") }, false},
		{"rate_limited", func() *exchanged { return answer("GET", 429, "") }, true},
		{"rate_limited", func() *exchanged { return answer("GET", 200, `{"status":"OVER_QUERY_LIMIT"}`) }, true},
		{"429", func() *exchanged { return answer("GET", 200, `{"status":"OVER_QUERY_LIMIT"}`) }, false},
		{"200", func() *exchanged { return answer("GET", 200, `{"status":"OVER_QUERY_LIMIT"}`) }, true},
		{"reset", func() *exchanged { return failed(io.ErrUnexpectedEOF) }, true},
		{"timeout", func() *exchanged { return failed(io.ErrUnexpectedEOF) }, false},
		{"timeout", func() *exchanged { return failed(errAttempt) }, true},
		{"reset", func() *exchanged { return failed(syscall.EPIPE) }, true},
	} {
		x := c.x()
		(&run{}).conclude(&provider{known: known{spec: &Spec{RetryOn: []string{c.on}}}}, x)
		if x.verdict.Repeat != c.want {
			t.Errorf("on %s: %d %v: repeated is %v", c.on, x.status, x.attempt.Err, x.verdict.Repeat)
		}
	}
}

// A failure of this machine's disk is not repeated, whatever came.
func TestLocalFailure(t *testing.T) {
	x := answer("GET", 503, "")
	x.attempt.Err = &localError{errors.New("disk full")}
	(&run{}).conclude(&provider{known: known{spec: &Spec{Classify: classify.Rules{{As: classify.RateLimited}}}}}, x)
	if x.verdict.Repeat || x.verdict.kind != record.IO {
		t.Errorf("got %+v", x.verdict)
	}
}

func TestBeginning(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"a":1}`)
	z.Close()
	long := strings.Repeat("x", quota.MaxBody+5)
	for _, c := range []struct{ coding, body, want string }{
		{"", `{"a":1}`, `{"a":1}`},
		{"identity", `{"a":1}`, `{"a":1}`},
		{"GZIP", packed.String(), `{"a":1}`},
		{"gzip", packed.String()[:packed.Len()-4], `{"a":1}`}, // as far as it goes
		{"gzip", `{"a":1}`, ""},
		{"br", "xx", ""},
		{"", long, long[:quota.MaxBody+1]},
	} {
		h := http.Header{}
		if c.coding != "" {
			h.Set("Content-Encoding", c.coding)
		}
		if got := string(beginning(h, []byte(c.body))); got != c.want {
			t.Errorf("%s %.20s: got %.20q, want %.20q", c.coding, c.body, got, c.want)
		}
	}
}

func TestSaying(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"You exceeded\u001b[31m your\nquota","code":"x"}}`: "You exceeded[31m your quota",
		`{"error_message":"over the limit","status":"OVER_DAILY_LIMIT"}`:        "over the limit",
		`{"errors":[{"message":"first"},{"message":"second"}]}`:                 "first",
		`{"error":"insufficient"}`:                                              "insufficient",
		`{"error":{"code":"insufficient_quota"}}`:                               "insufficient_quota",
		`{"title":"Quota exceeded","detail":"the day is over"}`:                 "the day is over",
		`{"message":` + `"` + strings.Repeat("é", 300) + `"}`:                   strings.Repeat("é", 199) + "…",
		`{"message":5,"errors":[[[]]]}`:                                         "",
		`[]`:                                                                    "", `not JSON`: "", ``: "",
	} {
		if got := saying([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
