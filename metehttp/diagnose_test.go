package metehttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// A transport with fewer connections than permits is a second bound that
// nobody sees: calls wait in net/http with a permit in their hands
// (golang/go#32336 is one who looked for it elsewhere).
func TestAPoolThatIsTooSmallIsTold(t *testing.T) {
	for most, want := range map[int]string{
		2: "Calls hold a permit for 200ms before they reach the wire, 80 % of their time: the connections are a hidden second bound. Raise the transport's MaxConnsPerHost to at least the 10 permits",
		0: "All 10 permits were in use: 500/s x 50ms needs about 25 (Little). Raise the concurrency.",
	} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPipes().serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(50 * time.Millisecond)
				_, _ = io.WriteString(w, "some text")
			})})
			pool.MaxConnsPerHost, pool.MaxIdleConnsPerHost = most, 10
			g := gate(t, mete.Config{Concurrency: 10, Limits: []mete.Limit{mete.Per(500, time.Second)}})
			rt := &Transport{Gate: fixed(g), Base: pool}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := get(ctx, rt, "http://example.test/"); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
			time.Sleep(time.Second)
			before := g.Stats()
			time.Sleep(4 * time.Second)
			if got := mete.Diagnose(before, g.Stats()); !strings.HasPrefix(got, want) {
				t.Errorf("MaxConnsPerHost %d: got %q, want %q", most, got, want)
			}
			cancel()
			wg.Wait()
			time.Sleep(time.Second) // for the server's last calls
		})
	}
}
