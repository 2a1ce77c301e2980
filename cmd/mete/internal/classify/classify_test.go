package classify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/classify"
)

func rules(t testing.TB, list ...classify.Rule) classify.Rules {
	t.Helper()
	for i := range list {
		if err := list[i].Compile(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// Errors that come with a 200 were taken for answers (the status of Google's
// geocoder: googlemaps/google-maps-services-python).
func TestFind(t *testing.T) {
	rs := rules(t,
		classify.Rule{Status: []int{429}, JQ: `.error.code == "insufficient_quota"`, As: classify.QuotaExhausted},
		classify.Rule{Status: []int{429, 503}, As: classify.RateLimited},
		classify.Rule{Status: []int{200}, JQ: `.status == "UNKNOWN_ERROR"`, As: classify.ServerError},
		classify.Rule{Status: []int{200}, JQ: `.n == 12345678901234567890`, As: classify.OK},
		classify.Rule{JQ: `.. | .code? == "denied"`, As: classify.Auth},
		classify.Rule{JQ: `empty`, As: classify.ClientError},
	)
	large := `{"status":"UNKNOWN_ERROR","pad":"` + strings.Repeat("x", classify.MaxBody) + `"}`
	for _, c := range []struct {
		status int
		body   string
		want   classify.Kind
	}{
		{429, `{"error":{"code":"insufficient_quota"}}`, classify.QuotaExhausted},
		{429, `{"error":{"code":"slow_down"}}`, classify.RateLimited},
		{429, ``, classify.RateLimited},
		{503, `{"error":"no object with a code"}`, classify.RateLimited},
		{502, `{"status":"UNKNOWN_ERROR"}`, ""},
		{200, `{"status":"UNKNOWN_ERROR"}`, classify.ServerError},
		{200, "\ufeff{\"status\":\"UNKNOWN_ERROR\"}\n", classify.ServerError},
		{200, `{"status":"UNKNOWN_ERROR"}{}`, ""},
		{200, `{"status":"UNKNOWN_ERR`, ""},
		{200, `<status>UNKNOWN_ERROR</status>`, ""},
		{200, ``, ""},
		{200, large, ""},
		{200, large[:classify.MaxBody+1], ""},
		{200, `{"n":12345678901234567890}`, classify.OK},
		{200, `{"n":12345678901234567891}`, ""},
		{401, `{"code":"denied"}`, classify.Auth},
	} {
		found, slow := rs.Find(c.status, []byte(c.body))
		got := classify.Kind("")
		if found != nil {
			got = found.As
		}
		if got != c.want || slow != nil {
			t.Errorf("%d %.60s: got %q, %v; want %q", c.status, c.body, got, slow, c.want)
		}
	}
}

// An expression that never ends holds nothing up, and those after it are asked.
func TestSlow(t *testing.T) {
	rs := rules(t,
		classify.Rule{JQ: `def f: f; f`, As: classify.Auth},
		classify.Rule{JQ: `.ok`, As: classify.OK},
	)
	begun := time.Now()
	found, slow := rs.Find(200, []byte(`{"ok":true}`))
	if found != &rs[1] || slow != &rs[0] {
		t.Errorf("got %v, %v", found, slow)
	}
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// Neither the environment nor files can be read by an expression.
func TestNothingFromOutside(t *testing.T) {
	t.Setenv("SECRET", "sk-1")
	rs := rules(t, classify.Rule{JQ: `env.SECRET == "sk-1" or $ENV.SECRET == "sk-1"`, As: classify.OK})
	if found, _ := rs.Find(200, []byte(`{}`)); found != nil {
		t.Error("an expression reads the environment")
	}
	for _, expr := range []string{`input`, `import "x" as x; .`, `include "x"; .`, `.a[`, `nosuch`, `1 as`, "\x00"} {
		r := classify.Rule{JQ: expr}
		err := r.Compile()
		if e, ok := errors.AsType[*classify.ExprError](err); !ok || e.Offset < 0 || e.Offset > len(expr) {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

// FuzzFind: no expression and no body makes it panic or hang.
func FuzzFind(f *testing.F) {
	f.Add(`.status == "UNKNOWN_ERROR"`, `{"status":"UNKNOWN_ERROR"}`)
	f.Add(`.[] | select(.a > 1)`, `[{"a":1e999}]`)
	f.Add(`def f: f; f`, `null`)
	f.Fuzz(func(t *testing.T, expr, body string) {
		r := classify.Rule{JQ: expr, As: classify.OK}
		if r.Compile() != nil {
			return
		}
		classify.Rules{r}.Find(200, []byte(body))
	})
}

func BenchmarkFind(b *testing.B) {
	rs := rules(b,
		classify.Rule{Status: []int{200}, JQ: `.status == "OVER_QUERY_LIMIT"`, As: classify.RateLimited},
		classify.Rule{Status: []int{200}, JQ: `.status == "UNKNOWN_ERROR"`, As: classify.ServerError},
	)
	body := []byte(`{"results":[` + strings.TrimSuffix(strings.Repeat(`{"lat":51.5,"lng":-0.12,"name":"10 Downing St"},`, 20), ",") + `],"status":"OK"}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		rs.Find(200, body)
	}
}
