package rate_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/rate"
)

// Real clocks and many goroutines: no more than the bound is granted, and the
// line comes to rest. Meant for the race detector.
func TestStress(t *testing.T) {
	const n, burst = 20_000, 100
	l := must(t, rate.Bucket{N: n, Per: time.Second, Burst: burst})
	begin := time.Now()
	var used atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 100 {
				switch (i + k) % 4 {
				case 0:
					if l.Allow(2) {
						used.Add(2)
					}
				case 1:
					if g, err := l.Take(t.Context(), 4); err == nil {
						g.Settle(1)
						used.Add(1)
					}
				case 2:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(k)*20*time.Microsecond)
					if l.Wait(ctx, 3) == nil {
						used.Add(3)
					}
					cancel()
				default:
					if l.Wait(t.Context(), 1) == nil {
						used.Add(1)
					}
				}
				if k%50 == 0 {
					l.Set(rate.Bucket{N: n, Per: time.Second, Burst: burst + int64(k%2)})
				}
			}
		})
	}
	wg.Wait()
	// The burst is changed to 101 at times, and lateness may be made up.
	if most := burst + 2 + n*time.Since(begin).Seconds(); float64(used.Load()) > most {
		t.Errorf("%d of %.0f used", used.Load(), most)
	}
	if s := l.Stats(); s.Waiting != 0 || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
}
