package mete

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// A permit that is lost comes back, also that of an attempt with a timeout
// which was the probe after a pause: with one permit nothing else would replace
// it (sony/gobreaker's half-open state sticks).
func TestLostProbeWithATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, FindLeaks: true, Timeout: time.Hour})
		g.Pause(time.Second)
		time.Sleep(2 * time.Second)
		func() {
			if _, err := g.Tries(t.Context(), Call{}).Next(); err != nil {
				t.Error(err)
			}
		}()
		for i := 0; g.Stats().Leaks == 0 && i < 100; i++ {
			runtime.GC()
			runtime.Gosched()
		}
		time.Sleep(probeLease)
		p, ok := g.TryAcquire(Call{})
		if p.Release(); !ok {
			t.Errorf("the permit was not found: %+v", g.Stats())
		}
		if len(g.q.leases) != 0 {
			t.Error("it is watched after it was found")
		}
	})
}

// An attempt that was not admitted has a context all the same. Nothing can be
// given back with it.
func TestContextOfARefusedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: time.Second})
		p, _ := g.TryAcquire(Call{})
		tries := g.Tries(t.Context(), Call{})
		if _, err := tries.Next(); !errors.Is(err, ErrWaitTimeout) {
			t.Fatal(err)
		}
		PermitFrom(tries.Context()).Release()
		if s := g.Stats(); s.InUse != 1 || s.Misuse != 1 {
			t.Errorf("%d in use, %d misused", s.InUse, s.Misuse)
		}
		p.Release()
		if _, err := g.Acquire(tries.Context(), Call{}); err != nil {
			t.Errorf("nested in a call that never was: %v", err)
		}
	})
}

// What an Observer is told is no part of what Update changes.
func TestObserverBesideUpdate(t *testing.T) {
	g := newGate(t, Config{Observer: &Observer{Admitted: func(Admission) {}, Ended: func(Ending) {}}})
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 100 {
			_ = g.Update(g.Config())
		}
	}()
	for range 300 {
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { return nil })
	}
	<-done
}

// Of several calls that were under way and are all pushed back, one tells
// something new, also where each had given its permit back before it said so.
func TestThrottlesAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lanes []string
		g := newGate(t, Config{
			Lanes:    []Lane{{Name: "first"}, {Name: "second"}},
			Retry:    Retry{Attempts: 1},
			Observer: &Observer{Ended: func(e Ending) { lanes = append(lanes, e.Lane, e.Held.String()) }},
		})
		var all [8]*Tries
		for i := range all {
			all[i] = g.Tries(t.Context(), Call{Lane: "second"})
			if _, err := all[i].Next(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, tries := range all {
			PermitFrom(tries.Context()).Release()
			tries.Again(Outcome{Err: errors.New("429"), Throttled: true})
			time.Sleep(time.Millisecond)
		}
		if n := g.q.pause.unhinted; n != 1 {
			t.Errorf("%d throttles", n)
		}
		if lanes[0] != "second" || lanes[1] != "1s" {
			t.Errorf("ended in lane %s after %s", lanes[0], lanes[1])
		}
	})
}

// Slow successes count as of now, also if calls were quick before: a breaker
// that forgot them would open because of a few failures.
func TestSlowSuccessesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Breaker: breaker.Config{Failures: 0.5, Window: 10 * time.Second, Calls: 10}, Retry: Retry{Attempts: 1}})
		for _, acquire := range []bool{false, true} {
			if g.calm() {
				t.Error("the clock is not read although calls are slow, or it is not known")
			}
			for range 16 {
				_ = Do(t.Context(), g, Call{}, func(context.Context) error { return nil })
			}
			if g.Stats(); !g.calm() {
				t.Fatal("the clock is read for each call")
			}
			call := func(d time.Duration, err error) {
				if acquire && err == nil {
					p, _ := g.Acquire(t.Context(), Call{})
					time.Sleep(d)
					p.Release()
					return
				}
				_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(d); return err })
			}
			for range 30 {
				go call(9900*time.Millisecond, nil)
			}
			for range 20 {
				go call(10500*time.Millisecond, errors.New("500"))
			}
			time.Sleep(11 * time.Second)
			if s := g.Stats(); s.Breaker != breaker.Closed {
				t.Errorf("%s after 20 failures of 50 calls", s.Breaker)
			}
		}
	})
}

// A flight that is used again is like a new one, save for what the next
// admission writes in any case.
func TestSpareFlightIsLikeNew(t *testing.T) {
	g := newGate(t, Config{})
	f := &flight{
		lane: g.q.lanes[0], weight: 1, costs: []int64{1}, granted: 1, deadline: 1, waits: &Waits{},
		paid: []payment{{}}[:0], sample: &sample{}, gap: 1, lease: &lease{}, timed: &timedAttempt{}, whole: func() {},
		probe: 1, wire: true, sent: true, settled: true, released: true, tried: true, looks: true,
	}
	full := reflect.ValueOf(*f)
	for i := range full.NumField() {
		// A ticket goes with the release, for the breaker's sake.
		if name := full.Type().Field(i).Name; full.Field(i).IsZero() && name != "ticket" && name != "next" {
			t.Errorf("the test is to set %s", name)
		}
	}
	g.q.leave(f)
	if want := (flight{lane: f.lane, granted: 1, paid: f.paid, wire: true, looks: true}); !reflect.DeepEqual(*f, want) {
		t.Errorf("got  %+v\nwant %+v", *f, want)
	}
	for range spareFlights + 1 {
		g.q.leave(&flight{})
	}
	n := 0
	for ; g.q.spares > 0 && n <= spareFlights; n++ {
		g.q.board()
	}
	if n != spareFlights || g.q.spare != nil {
		t.Errorf("%d are kept", n)
	}
	if one, other := g.q.board(), g.q.board(); one == other {
		t.Error("two calls have one flight")
	}
}

// The context of an attempt with a timeout is a context like any other, before
// somebody asks for Done and after, and after the release.
func TestContextOfATimedAttempt(t *testing.T) {
	outside := newGate(t, Config{Timeout: time.Minute})
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		for _, g := range []*Gate{outside, newGate(t, Config{Timeout: time.Minute})} {
			for _, asked := range []bool{false, true} {
				attempt := func(parent context.Context) (context.Context, *Permit) {
					tries := g.Tries(context.WithValue(parent, key{}, "value"), Call{})
					p, err := tries.Next()
					if err != nil {
						t.Fatal(err)
					}
					if asked {
						tries.Context().Done()
					}
					return tries.Context(), p
				}
				ctx, p := attempt(t.Context())
				end, ok := ctx.Deadline()
				if left := time.Until(end); !ok || left != time.Minute || ctx.Err() != nil {
					t.Errorf("asked %v: %v left, %v", asked, left, ctx.Err())
				}
				p.Release()
				if ctx.Err() != context.Canceled || ctx.Value(key{}) != "value" {
					t.Errorf("asked %v: %v, %v after the release", asked, ctx.Err(), ctx.Value(key{}))
				}
				select {
				case <-ctx.Done():
				default:
					t.Errorf("asked %v: the context outlives its permit", asked)
				}

				ctx, p = attempt(t.Context())
				time.Sleep(time.Minute)
				synctest.Wait()
				if ctx.Err() != context.DeadlineExceeded {
					t.Errorf("asked %v: %v at the deadline", asked, ctx.Err())
				}
				p.Release()

				early, cancel := context.WithTimeout(t.Context(), time.Second)
				ctx, p = attempt(early)
				end, ok = ctx.Deadline()
				if left := time.Until(end); !ok || left != time.Second {
					t.Errorf("asked %v: %v left of the caller's second", asked, left)
				}
				cancel()
				if ctx.Err() != context.Canceled {
					t.Errorf("asked %v: %v after the caller's end", asked, ctx.Err())
				}
				p.Release()
			}
		}
	})
}

// A permit that was given back is watched no more: with its flight another one
// is in use by now.
func TestReleasedPermitIsNoLeak(t *testing.T) {
	g := newGate(t, Config{FindLeaks: true})
	for _, end := range []func(*Permit){(*Permit).Release, (*Permit).Cancel} {
		p, _ := g.TryAcquire(Call{})
		if len(g.q.leases) != 1 {
			t.Fatal("not watched")
		}
		if end(p); len(g.q.leases) != 0 {
			t.Error("watched after its end")
		}
	}
	tries := g.Tries(t.Context(), Call{})
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	if tries.Again(Outcome{Answered: true}); len(g.q.leases) != 1 {
		t.Error("not watched until its end")
	}
	if p.Release(); len(g.q.leases) != 0 {
		t.Error("watched after its end")
	}
}

// What an attempt paid stays paid, also if the permit that is kept for the next
// one is canceled meanwhile.
func TestKeptPermitCanceled(t *testing.T) {
	g := newGate(t, Config{Limits: []Limit{Per(1, time.Hour)}, Retry: Retry{Attempts: 2, KeepPermit: true}})
	tries := g.Tries(t.Context(), Call{})
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	if !tries.Again(Outcome{Err: errors.New("500"), Repeat: true}) {
		t.Fatal("not repeated")
	}
	p.Cancel()
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("a start that was made came back")
	}
}

// What is known of a permit that may be lost follows its repetition, and ends
// its sample when it is taken back.
func TestLeaseOfARepetition(t *testing.T) {
	g := newGate(t, Config{FindLeaks: true, Adaptive: &adaptive.Config{}, Limits: []Limit{Per(5, time.Second)}})
	p, _ := g.TryAcquire(Call{Wire: true})
	p.Sent()
	if err := p.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := p.flight
	if l := f.lease; &l.paid[0] != &f.paid[0] {
		t.Error("what the start before has paid is watched")
	}
	f.lease.cleanup.Stop()
	f.sample.told(adaptive.Success)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = append(g.lost, f.lease)
	g.now()
	if f.sample.started || f.sample.outcome != adaptive.Ignored || g.q.inUse != 0 {
		t.Errorf("taken back: %+v, %d in use", *f.sample, g.q.inUse)
	}
}
