package metehttp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// stalling is a connection whose first write is late, as when the process is
// stopped between the stamp and the system call.
type stalling struct {
	net.Conn
	once sync.Once
}

func (c *stalling) Write(b []byte) (int, error) {
	c.once.Do(func() { time.Sleep(100 * time.Millisecond) })
	return c.Conn.Write(b)
}

// A start counts from when it left, not from when it was about to: one that
// the machine holds back on its last steps stands in no fuller window. A
// process may be stopped anywhere, for any time.
func TestHeldBackOnTheLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		pipe := newPipes()
		pool := pipe.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
		})})
		late := false
		dial := Watched(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := pipe.dial(ctx, network, addr)
			if !late && err == nil {
				late = true
				return &stalling{Conn: c}, nil
			}
			return c, err
		})
		pool.DialContext = dial
		g := gate(t, mete.Config{Concurrency: 50, Limits: []mete.Limit{mete.Per(50, time.Second)}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := most(at, time.Second); n > 50 || n < 49 || len(at) != 200 {
			t.Errorf("%d of %d in a second", n, len(at))
		}
		idle(t, g)
	})
}
