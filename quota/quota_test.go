package quota_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

func ExampleParse() {
	r := quota.Parse(quota.Response{
		Provider: "github",
		Status:   403,
		Header: http.Header{
			"X-Ratelimit-Limit":     {"5000"},
			"X-Ratelimit-Remaining": {"0"},
			"X-Ratelimit-Reset":     {"1773144600"},
			"X-Ratelimit-Resource":  {"core"},
		},
		Now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC),
	})
	fmt.Println(r.Throttled, r.RetryAfter)
	for _, q := range r.Quotas {
		fmt.Println(q.Name, q.Remaining, "of", q.Limit, q.Unit, "per", q.Window)
	}
	// Output:
	// true 10m0s
	// core 0 of 5000 requests per 1h0m0s
}

// A server may send a megabyte of header fields; no field may cost more than
// its length.
func TestHostileHeader(t *testing.T) {
	long := map[string]string{
		"Ratelimit":        `"a";pk=:YQ==:, `,
		"Ratelimit-Policy": "1;w=1, ",
		"Ratelimit-Limit":  "1;w=1, ",
		"Retry-After":      ", ,",
	}
	h := make(http.Header)
	for name, part := range long {
		h[name] = []string{strings.Repeat(part, 1<<20/len(part)), part[:3]}
		for range 1000 {
			h[name] = append(h[name], part)
		}
	}
	start := time.Now()
	for range 10 {
		quota.Parse(quota.Response{Status: 429, Header: h, Now: noon})
	}
	if d := time.Since(start); d > 10*time.Second { // quadratic would be hours
		t.Errorf("took %v", d)
	}
}

func BenchmarkParse(b *testing.B) {
	plain := http.Header{
		"Date": {"Tue, 10 Mar 2026 12:00:00 GMT"}, "Content-Type": {"application/json"}, "Content-Length": {"12"},
		"Server": {"x"}, "Vary": {"Accept"}, "Cache-Control": {"no-store"}, "Etag": {"abc"}, "Connection": {"close"},
	}
	github := plain.Clone()
	github["X-Ratelimit-Limit"] = []string{"5000"}
	github["X-Ratelimit-Remaining"] = []string{"4999"}
	github["X-Ratelimit-Reset"] = []string{"1773144600"}
	github["X-Ratelimit-Resource"] = []string{"core"}
	for name, r := range map[string]quota.Response{
		"plain":  {Status: 200, Header: plain, Now: noon},
		"github": {Status: 200, Header: github, Now: noon, Provider: "github"},
		"body":   {Status: 429, Header: plain, Now: noon, Body: []byte(`{"error":{"message":"try again in 20ms","code":"rate_limit_exceeded"}}`)},
		"large":  {Status: 200, Header: plain, Now: noon, Body: []byte(`[` + strings.Repeat(`{"name":"value","n":1},`, 2800) + `1]`)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				quota.Parse(r)
			}
		})
	}
}
