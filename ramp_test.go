package mete

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What may go together after a pause is a quarter as well, then a half: a burst
// that was saved up while nobody called must not all come at once, or the
// provider refuses again what it has just refused.
func TestRampHoldsBackTheBurst(t *testing.T) {
	for _, l := range []Limit{
		{N: 50, Per: time.Second, Burst: 50},
		{N: 50, Per: time.Second, Burst: 50, Bucket: true},
		{N: 100, Per: time.Second, Burst: 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Limits: []Limit{l}, MaxWait: -1})
			time.Sleep(time.Minute)
			time.Sleep(throttle(t, g, Outcome{Hinted: true, RetryAfter: 2 * time.Second}))
			if err := Do(t.Context(), g, Call{Patient: true}, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			var mu sync.Mutex
			var at []time.Duration
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					for {
						p, err := g.Acquire(ctx, Call{Patient: true})
						if err != nil {
							return
						}
						mu.Lock()
						at = append(at, time.Since(start))
						mu.Unlock()
						p.Release()
					}
				})
			}
			wg.Wait()
			// The refusal took a tenth of the rate as well.
			for i, share := range []float64{0.25 * 0.9, 0.5 * 0.9} {
				from := time.Duration(i) * time.Second
				least, most := share*float64(l.N)-2, share*float64(l.N+l.Burst)+3
				if n := float64(between(at, from, from+time.Second)); n < least || n > most {
					t.Errorf("%+v: %v in second %d after the pause, want %.0f to %.0f", l, n, i+1, least, most)
				}
			}
			if n := float64(between(at, 4*time.Second, 5*time.Second)); n < 0.85*float64(l.N) || n > 0.95*float64(l.N)+1 {
				t.Errorf("%+v: %v in the fifth second", l, n)
			}
		})
	}
}

// The permits open in the same steps, rounded up; a call that needs more than a
// step has goes through alone.
func TestRampOfThePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 10, MaxWait: -1})
		ramp := func() {
			g.Pause(time.Second)
			time.Sleep(time.Second)
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		ramp()
		n := 0
		for step, want := range []int{3, 5, 10, 10} {
			for {
				p, ok := g.TryAcquire(Call{})
				if !ok {
					break
				}
				defer p.Release()
				n++
			}
			if n != want {
				t.Errorf("%d of 10 permits in step %d, want %d", n, step, want)
			}
			time.Sleep(time.Second)
		}
		g = newGate(t, Config{Concurrency: 10, MaxWait: -1})
		ramp()
		start := time.Now()
		p, err := g.Acquire(t.Context(), Call{Weight: 10})
		if err != nil || time.Since(start) != 0 {
			t.Errorf("a call of all permits: %v after %v", err, time.Since(start))
		}
		p.Release()
	})
}
