package metehttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
)

// instant answers at once; it calls the hooks as net/http does.
type instant struct{ status int }

func (t instant) RoundTrip(r *http.Request) (*http.Response, error) {
	traced(r)
	return &http.Response{StatusCode: t.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, nil
}

// BenchmarkClient is a request over a transport that answers at once: bare,
// through a gate without a limit, and through one with a limit.
func BenchmarkClient(b *testing.B) {
	gates := map[string]func() http.RoundTripper{
		"bare": func() http.RoundTripper { return instant{200} },
		"gate": func() http.RoundTripper {
			return &Transport{Gate: fixed(gate(b, mete.Config{Concurrency: 100})), Base: instant{200}}
		},
		"limit": func() http.RoundTripper {
			l := mete.Limit{N: 1e9, Per: time.Second, Burst: 1e9}
			return &Transport{Gate: fixed(gate(b, mete.Config{Concurrency: 100, Limits: []mete.Limit{l}})), Base: instant{200}}
		},
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, name := range []string{"bare", "gate", "limit"} {
		for kind, parent := range map[string]context.Context{"background": context.Background(), "cancelable": ctx} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				rt := gates[name]()
				req, _ := http.NewRequestWithContext(parent, "GET", "http://example.test/", nil)
				b.ReportAllocs()
				for b.Loop() {
					resp, err := rt.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
	}
}

// BenchmarkOutcome is what it costs to judge a success.
func BenchmarkOutcome(b *testing.B) {
	plain := http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"75"}, "Date": {"Sun, 29 Nov 2026 18:00:00 GMT"},
		"Server": {"nginx"}, "Cache-Control": {"no-store"}, "X-Request-Id": {"8f14e45f"}, "Strict-Transport-Security": {"max-age=31536000"},
		"Vary": {"Accept-Encoding"},
	}
	limited := plain.Clone()
	limited["X-Ratelimit-Limit"], limited["X-Ratelimit-Remaining"], limited["X-Ratelimit-Reset"] = []string{"5000"}, []string{"4987"}, []string{"1796000000"}
	item := `{"id":17,"name":"a place \"here\"","at":[48.137,11.575],"tags":{"status":"ok","message":"none"}},`
	object := func(n int) []byte {
		return []byte(`{"data":[` + strings.TrimSuffix(strings.Repeat(item, max(n/len(item), 1)), ",") + `],"status":"OK"}`)
	}
	req, _ := http.NewRequest("GET", "http://example.test/", nil)
	skip := Attempt{Response: &http.Response{StatusCode: 200, Header: limited}, SkipQuotas: true}
	for name, a := range map[string]Attempt{
		"skipped": skip,
		"plain":   {Response: &http.Response{StatusCode: 200, Header: plain}},
		"limited": {Response: &http.Response{StatusCode: 200, Header: limited}},
		"0KB":     {Response: &http.Response{StatusCode: 200, Header: plain}, Body: []byte(`{"id":17,"name":"a place \"here\"","at":[48.137,11.575],"tags":{},"ok":true}`)},
		"2KB":     {Response: &http.Response{StatusCode: 200, Header: plain}, Body: object(2000)},
		"60KB":    {Response: &http.Response{StatusCode: 200, Header: plain}, Body: object(60000)},
	} {
		a.Request, a.Replayable = req, true
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(a.Body)))
			for b.Loop() {
				if o := a.Outcome(); !o.Answered {
					b.Fatal(o)
				}
			}
		})
	}
}
