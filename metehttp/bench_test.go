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
