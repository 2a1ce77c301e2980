package mete

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// After a pause the first call is likely to meet a connection that the server
// has closed meanwhile, so that the transport sends it again by itself
// (golang/go#22158). The lost probe must not be waited for by its own
// repetition, and the repetition must be what ends the pause.
func TestReplayOfTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 2, Limits: []Limit{Per(10, time.Second)}})
		g.Pause(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tries := g.Tries(ctx, Call{Wire: true})
		p, err := tries.Next()
		if err != nil {
			t.Fatal(err)
		}
		p.Sent()
		if err := p.Replay(ctx); err != nil {
			t.Fatal(err)
		}
		p.Sent()
		if tries.Again(Outcome{Answered: true}) {
			t.Error("a success is repeated")
		}
		p.Release()
		if err := Do(ctx, g, Call{}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if s := g.Stats(); s.Replays != 1 || s.Attempts != 3 {
			t.Errorf("%d replays, %d attempts", s.Replays, s.Attempts)
		}
		idle(t, g)
	})
}

// A call from before a pause whose repetition comes after it is the probe, and
// its end gives the probe back.
func TestReplayAcrossAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(10, time.Second)}})
		p, err := g.Acquire(t.Context(), Call{Wire: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Sent()
		g.Pause(5 * time.Second)
		start := time.Now()
		if err := p.Replay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 5*time.Second {
			t.Errorf("sent again after %v, within the pause", d)
		}
		p.Sent()
		p.Release()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := Do(ctx, g, Call{}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		idle(t, g)
	})
}

// A replay is refused at once where it would come too late, and a permit stays
// good when the gate is closed.
func TestReplayRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(1, time.Minute)}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p, err := g.Acquire(ctx, Call{Wire: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Sent()
		if err := p.Replay(ctx); !errors.Is(err, ErrDeadline) || ctx.Err() != nil {
			t.Errorf("%v", err)
		}
		g.Close()
		if err := p.Replay(ctx); err != nil {
			t.Errorf("after Close: %v", err)
		}
		p.Release()
		idle(t, g)
	})
}

// A permit that is kept in the back-off is not the probe any more once its
// attempt has failed: otherwise it waits for itself.
func TestKeptProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Retry: Retry{Attempts: 2, Delay: time.Second, KeepPermit: true}})
		g.Pause(time.Second)
		n := 0
		err := Do(t.Context(), g, Call{}, func(context.Context) error {
			if n++; n == 1 {
				return errors.New("500")
			}
			return nil
		})
		if err != nil || n != 2 {
			t.Errorf("%d attempts, %v", n, err)
		}
		idle(t, g)
	})
}

// Config.Total bounds Tries as it bounds Do, and its timer ends with the call.
func TestTotalOfTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Total: 10 * time.Second, Retry: Retry{Attempts: 9, Delay: 4 * time.Second}})
		tries := g.Tries(t.Context(), Call{})
		start := time.Now()
		for {
			p, err := tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !tries.Again(Outcome{Err: errors.New("500"), Repeat: true}) {
				p.Release()
				break
			}
		}
		if err := tries.Refusal(); !errors.Is(err, ErrDeadline) || time.Since(start) != 8*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		idle(t, g)
	})
}

// A delay that the server names is never cut, even where it is no throttle,
// and a refusal after an attempt still wraps its error (curl/curl#6408).
func TestHintWithoutThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Retry: Retry{Attempts: 3, Delay: time.Millisecond}})
		failed := errors.New("502")
		tries := g.Tries(t.Context(), Call{})
		if _, err := tries.Next(); err != nil {
			t.Fatal(err)
		}
		if !tries.Again(Outcome{Err: failed, Repeat: true, Hinted: true, RetryAfter: 7 * time.Second}) {
			t.Fatal("not repeated")
		}
		start := time.Now()
		p, err := tries.Next()
		if err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if tries.Again(Outcome{Err: failed, Repeat: true, Hinted: true, RetryAfter: time.Hour}) {
			t.Error("waits an hour")
		}
		p.Release()
		if err := tries.Refusal(); !errors.Is(err, ErrPaused) || !errors.Is(err, failed) {
			t.Error(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		tries = g.Tries(ctx, Call{})
		if _, err := tries.Next(); err != nil {
			t.Fatal(err)
		}
		tries.Again(Outcome{Err: failed, Repeat: true})
		cancel()
		if _, err := tries.Next(); !errors.Is(err, context.Canceled) || !errors.Is(err, failed) || !errors.Is(err, ErrCanceled) {
			t.Error(err)
		}
		idle(t, g)
	})
}

// What is sent again costs again what it cost, also where it has to be let
// through because the limit was lowered below it meanwhile.
func TestReplayCostsTheSame(t *testing.T) {
	for _, lowered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Concurrency: 1, Limits: []Limit{{Name: "tokens", Unit: "tokens", N: 100, Per: time.Minute, Burst: 100}}}
			g := newGate(t, cfg)
			p, err := g.Acquire(t.Context(), Call{Wire: true, Costs: map[string]int64{"tokens": 30}})
			if err != nil {
				t.Fatal(err)
			}
			p.Sent()
			want := int64(40)
			if lowered {
				cfg.Limits[0].N, cfg.Limits[0].Burst, want = 20, 20, -40
				if err := g.Update(cfg); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Replay(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Sent()
			p.Release()
			if left := g.Stats().Limits[0].Free; left != want {
				t.Errorf("lowered %v: %d tokens left, want %d", lowered, left, want)
			}
		})
	}
}
