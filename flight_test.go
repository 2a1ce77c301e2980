package mete

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

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
