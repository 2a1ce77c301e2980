package mete

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A probe that never ends does not close the provider for good: its place is a
// lease (sony/gobreaker's half-open state has none and sticks).
func TestLostProbeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1})
		g.Pause(time.Second)
		lost, err := g.Acquire(t.Context(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		next, err := g.Acquire(t.Context(), Call{})
		if err != nil || time.Since(start) != time.Minute {
			t.Fatalf("the next probe: %v after %v", err, time.Since(start))
		}
		lost.Cancel()
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("a third call beside the probe")
		}
		next.Release()
		p, err := g.Acquire(t.Context(), Call{})
		if err != nil || time.Since(start) != time.Minute {
			t.Errorf("after the probe: %v after %v", err, time.Since(start))
		}
		p.Release()
	})
}

// While a probe is out nobody knows how long it takes: a caller with a deadline
// waits for it.
func TestProbeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{})
		g.Pause(time.Second)
		probe, err := g.Acquire(t.Context(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, probe.Release)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		p, err := g.Acquire(ctx, Call{})
		if err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		p.Release()
	})
}
