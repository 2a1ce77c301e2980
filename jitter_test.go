package mete

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Every pause that a throttle begins has its jitter, a tenth of what was asked
// for or a quarter of a guess: the end of 100 of them is spread over that. That
// all of them lie in a half of it has a chance of 1e-30.
func TestPausesAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		o            Outcome
		asked, share time.Duration
	}{
		"hinted":         {Outcome{Hinted: true, RetryAfter: 20 * time.Second}, 20 * time.Second, 2 * time.Second},
		"not hinted":     {Outcome{}, time.Second, 250 * time.Millisecond},
		"a hint of none": {Outcome{Hinted: true}, time.Second, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				low, high := time.Hour, time.Duration(0)
				for range 100 {
					d := throttle(t, newGate(t, Config{}), c.o)
					low, high = min(low, d), max(high, d)
				}
				if low < c.asked || high > c.asked+c.share || low > c.asked+c.share/2 || high < c.asked+c.share/2 {
					t.Errorf("pauses of %v to %v", low, high)
				}
			})
		})
	}
}

// Whoever would sit out just what was asked for is not refused for the jitter.
func TestJitterRefusesNobody(t *testing.T) {
	for _, jitter := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Concurrency: 2, MaxWait: -1})
			held, _ := g.TryAcquire(Call{Weight: 1})
			tries := g.Tries(t.Context(), Call{})
			p, err := tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 2)
			for _, most := range []time.Duration{10 * time.Second, 10*time.Second - 1} {
				go func() {
					p, err := g.Acquire(t.Context(), Call{Patient: true, MaxPause: most})
					if err == nil {
						p.Release()
					}
					done <- err
				}()
			}
			synctest.Wait()
			if jitter {
				tries.Again(Outcome{Err: errPushedBack, Throttled: true, Hinted: true, RetryAfter: 10 * time.Second})
			} else {
				g.Pause(10 * time.Second)
			}
			synctest.Wait()
			select {
			case err := <-done:
				if !errors.Is(err, ErrPaused) {
					t.Error(err)
				}
			default:
				t.Error("one that sits out less waits")
			}
			p.Release()
			held.Release()
			if err := <-done; err != nil {
				t.Errorf("one that sits out as much: %v", err)
			}
		})
	}
}

// Where a pause ends in the instant of a deadline, the deadline decides, and at
// once.
func TestPauseUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: -1})
		held, _ := g.TryAcquire(Call{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		time.AfterFunc(time.Second, func() { g.Pause(9 * time.Second) })
		if _, err := g.Acquire(ctx, Call{}); !errors.Is(err, ErrDeadline) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		held.Release()
	})
}
