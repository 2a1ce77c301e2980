package mete

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func exhaust(t *testing.T, g *Gate, after time.Duration) {
	t.Helper()
	tries := g.Tries(t.Context(), Call{Patient: true})
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	tries.Again(Outcome{Err: errPushedBack, Throttled: true, Terminal: true, Hinted: after > 0, RetryAfter: after})
	p.Release()
}

// A quota that is used up closes a provider for an hour, or for as long as it
// says if that is longer; of two the later end counts; and then one call goes
// first to see.
func TestStopLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Hour, 3 * time.Hour: 3 * time.Hour} {
			g := newGate(t, Config{})
			exhaust(t, g, after)
			if d := g.Stats().Paused; d != want {
				t.Errorf("asked for %v: stopped for %v, want %v", after, d, want)
			}
		}
		g := newGate(t, Config{MaxWait: -1})
		late := g.Tries(t.Context(), Call{})
		p, err := late.Next()
		if err != nil {
			t.Fatal(err)
		}
		exhaust(t, g, 3*time.Hour)
		late.Again(Outcome{Err: errPushedBack, Throttled: true, Terminal: true})
		p.Release()
		if d := g.Stats().Paused; d != 3*time.Hour {
			t.Errorf("a shorter stop left %v of 3h", d)
		}
		time.Sleep(3 * time.Hour)
		probe, ok := g.TryAcquire(Call{})
		if !ok {
			t.Fatal("stopped after its time")
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("a second call beside the one that goes to see")
		}
		probe.Release()
	})
}

// Reopen ends what responses said at once, also where nothing is heard after it:
// a remainder of nothing, and a limit that was lowered.
func TestReopenForgetsQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(100, time.Second)}, MaxWait: -1})
		respond(t, g, shows("core", 5, 0, time.Second, time.Hour))
		time.Sleep(time.Second)
		if d := delay(t, g); d < time.Minute {
			t.Fatalf("a call waits %v though nothing is left", d)
		}
		g.Reopen()
		start := time.Now()
		for range 21 {
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d > 220*time.Millisecond {
			t.Errorf("20 of 100 a second took %v", d)
		}
	})
}
