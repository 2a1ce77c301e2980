package mete

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// An attempt that was never sent gets its charge back also where the permit is
// kept for the next one: it would lie in every window for good.
func TestKeptPermitOfWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Limits: []Limit{Per(2, time.Second)}, Retry: Retry{Attempts: 9, Delay: time.Millisecond, KeepPermit: true}})
		tries := g.Tries(t.Context(), Call{Wire: true})
		for i := range 5 {
			p, err := tries.Next()
			if err != nil {
				t.Fatalf("after %d attempts that were not sent: %v", i, err)
			}
			if i == 4 {
				p.Sent()
				tries.Again(Outcome{Answered: true})
				p.Release()
				break
			}
			if !tries.Again(Outcome{Err: errAgain, Repeat: true, Free: true}) {
				t.Fatal("not repeated")
			}
		}
		time.Sleep(2 * time.Second)
		if free := g.Stats().Limits[0].Free; free != 2 {
			t.Errorf("%d of 2 units free at rest", free)
		}
		idle(t, g)
	})
}

// A permit that goes from one attempt to the next is not lost with the first.
func TestKeptPermitIsNoLeak(t *testing.T) {
	g := newGate(t, Config{Concurrency: 2, FindLeaks: true, Retry: Retry{Attempts: 3, Delay: time.Millisecond, KeepPermit: true}})
	n := 0
	err := Do(t.Context(), g, Call{}, func(context.Context) error {
		if n++; n < 3 {
			return errAgain
		}
		for range 3 {
			runtime.GC()
			time.Sleep(time.Millisecond) // the cleanups have a goroutine of their own
		}
		if s := g.Stats(); s.Leaks != 0 || s.InUse != 1 {
			t.Errorf("%d leaks, %d in use", s.Leaks, s.InUse)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	idle(t, g)
}

// Attempts under a kept permit teach the adaptive concurrency like all others.
func TestKeptPermitsAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1}, Retry: Retry{Attempts: 3, Delay: time.Second, KeepPermit: true}})
		n := 0
		if err := Do(t.Context(), g, Call{}, func(context.Context) error {
			if n++; n < 3 {
				return errAgain
			}
			if in := g.Stats().Adaptive.InFlight; in != 1 {
				t.Errorf("%d on the wire in the third attempt", in)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if in := g.Stats().Adaptive.InFlight; in != 0 {
			t.Errorf("%d on the wire at rest", in)
		}
		idle(t, g)
	})
}

// The probe of a half-open breaker that net/http sends again is the probe
// still: it does not wait for itself, and its success closes the breaker.
func TestReplayOfTheBreakersProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := broken(t, Config{Concurrency: 5})
		time.Sleep(5 * time.Second)
		tries := g.Tries(t.Context(), Call{Wire: true})
		p, err := tries.Next()
		if err != nil {
			t.Fatal(err)
		}
		p.Sent()
		start := time.Now()
		if err := p.Replay(tries.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		p.Sent()
		tries.Again(Outcome{Answered: true})
		p.Release()
		if s := g.Stats().Breaker; s != breaker.Closed {
			t.Errorf("%s after the probe's success", s)
		}
		idle(t, g)
	})
}

// An Observer that panics loses no permit.
func TestObserverPanics(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		obs  Observer
	}{
		{"admitted", Observer{Admitted: func(Admission) { panic(boom) }}},
		{"ended", Observer{Ended: func(Ending) { panic(boom) }}},
		{"refused", Observer{Refused: func(*Rejected) { panic(boom) }}},
		{"paused", Observer{Paused: func(string, time.Duration) { panic(boom) }}},
	} {
		for _, keep := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGate(t, Config{Concurrency: 1, Observer: &c.obs, Retry: Retry{Attempts: 3, Delay: time.Hour, KeepPermit: keep}})
					other := newGate(t, Config{Concurrency: 1})
					func() {
						defer func() {
							if r := recover(); r != boom {
								t.Errorf("recovered %v", r)
							}
						}()
						if c.obs.Admitted != nil {
							_, _ = AcquireAll(t.Context(), At{Gate: g}, At{Gate: other})
						}
						if c.obs.Refused != nil {
							time.AfterFunc(10*time.Millisecond, func() { g.Close() }) // in the back-off
						}
						_ = Do(t.Context(), g, Call{}, func(context.Context) error { return After(errAgain, time.Second) })
					}()
					if n := g.Stats().InUse + other.Stats().InUse; n != 0 {
						t.Errorf("keep %v: %d permits lost", keep, n)
					}
				})
			})
		}
	}
}

// The function of a call may give its permit back itself, as soon as it needs
// no more of the provider: what follows of the call gives back nothing.
func TestFunctionReleasesItsPermit(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Concurrency: 2, Timeout: time.Second, Retry: Retry{Attempts: 2, KeepPermit: keep}})
			other, _ := g.TryAcquire(Call{})
			runs := 0
			err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
				runs++
				PermitFrom(ctx).Release()
				if s := g.Stats(); s.InUse != 1 {
					t.Errorf("%d in use after the release, want 1", s.InUse)
				}
				return errors.New("again")
			})
			if err == nil || runs != 2 {
				t.Errorf("%d runs, %v", runs, err)
			}
			if s := g.Stats(); s.InUse != 1 || s.Misuse != 0 {
				t.Errorf("%d in use, misuse %d; want 1 and 0", s.InUse, s.Misuse)
			}
			other.Release()
			if s := g.Stats(); s.InUse != 0 {
				t.Errorf("%d in use at the end", s.InUse)
			}
		})
	}
}
