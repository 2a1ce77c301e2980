package mete

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errPushedBack = errors.New("429")

// throttle makes one attempt that the provider pushes back, and returns the
// length of the pause after it.
func throttle(t testing.TB, g *Gate, o Outcome) time.Duration {
	t.Helper()
	tries := g.Tries(t.Context(), Call{Patient: true})
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	o.Err, o.Throttled = errPushedBack, true
	tries.Again(o)
	p.Release()
	return g.Stats().Paused
}

func within(t testing.TB, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// Without a hint the pause grows by itself, with a hint of zero too
// (octokit/plugin-throttling.js#566, nodejs/undici#5519); a success starts anew.
func TestThrottlesWithoutHint(t *testing.T) {
	for _, o := range []Outcome{{}, {Hinted: true}} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{MaxWait: -1})
			for _, s := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
				d := throttle(t, g, o)
				within(t, "pause", d, s*time.Second, min(s*time.Second*5/4, (s+5)*time.Second))
				time.Sleep(d)
			}
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			within(t, "after a success", throttle(t, g, o), time.Second, 1250*time.Millisecond)
		})
	}
}

// Calls that were under way when the pause began tell nothing new, save a later
// time; one jitter is added to whatever end the pause has
// (NousResearch/hermes-agent#109234).
func TestStragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{{N: 1000, Per: time.Second, Burst: 1000}}})
		var tries []*Tries
		for range 6 {
			try := g.Tries(t.Context(), Call{})
			p, err := try.Next()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Release()
			tries = append(tries, try)
		}
		end := func(i int, o Outcome) time.Duration {
			o.Err, o.Throttled = errPushedBack, true
			tries[i].Again(o)
			return g.Stats().Paused
		}
		start := time.Now()
		first := end(0, Outcome{Hinted: true, RetryAfter: 10 * time.Second})
		within(t, "first", first, 10*time.Second, 11*time.Second)
		jitter := first - 10*time.Second
		time.Sleep(time.Millisecond)
		if d := end(1, Outcome{Hinted: true, RetryAfter: 5 * time.Second}); d != first-time.Millisecond {
			t.Errorf("an earlier end changed the pause to %v", d)
		}
		for i := 2; i < 4; i++ { // no hint
			if d := end(i, Outcome{}); d != first-time.Millisecond {
				t.Errorf("a straggler without a hint changed the pause to %v", d)
			}
		}
		if d := end(4, Outcome{Hinted: true, RetryAfter: 20 * time.Second}); d != 20*time.Second+jitter {
			t.Errorf("the later end is in %v, want 20s and the jitter of %v", d, jitter)
		}
		g.Pause(time.Second)
		if d := g.Stats().Paused; d != 20*time.Second+jitter {
			t.Errorf("a shorter pause changed the end to %v", d)
		}
		// All that together was one throttle: a tenth of the rate, 1 s next.
		if r := g.Stats().Rate; math.Abs(r-0.9) > 1e-9 {
			t.Errorf("rate %v", r)
		}
		time.Sleep(time.Until(start.Add(40 * time.Second)))
		within(t, "unhinted after it", throttle(t, g, Outcome{}), time.Second, 1250*time.Millisecond)
	})
}

// Nothing of a pause is left to the call that came into it by accident.
func TestPauseOfNoLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{})
		time.Sleep(time.Minute)
		g.Pause(0)
		g.Pause(-time.Second)
		for range 3 {
			if _, ok := g.TryAcquire(Call{}); !ok {
				t.Fatal("a pause of no length closes the gate")
			}
		}
	})
}

// One probe goes out after a pause; whoever ends it without an answer gives it
// to the next, and an answer opens the gate.
func TestProbeIsALease(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, g *Gate)
		open bool
	}{
		"answer": {func(t *testing.T, g *Gate) {
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); return nil })
		}, true},
		"permanent error": {func(t *testing.T, g *Gate) {
			_ = Do(t.Context(), g, Call{}, func(context.Context) error {
				time.Sleep(time.Second)
				return Permanent(errors.New("404"))
			})
		}, true},
		"error": {func(t *testing.T, g *Gate) {
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); return errors.New("reset") })
		}, false},
		"panic": {func(t *testing.T, g *Gate) {
			defer func() { _ = recover() }()
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); panic("boom") })
		}, false},
		"goexit": {func(t *testing.T, g *Gate) {
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); runtime.Goexit(); return nil })
		}, false},
		"context": {func(t *testing.T, g *Gate) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = Do(ctx, g, Call{}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}, false},
		"cancel": {func(t *testing.T, g *Gate) {
			p, _ := g.Acquire(t.Context(), Call{})
			time.Sleep(time.Second)
			p.Cancel()
		}, false},
		"never sent": {func(t *testing.T, g *Gate) {
			p, _ := g.Acquire(t.Context(), Call{Wire: true})
			time.Sleep(time.Second)
			p.Release()
		}, false},
		"release": {func(t *testing.T, g *Gate) {
			p, _ := g.Acquire(t.Context(), Call{})
			time.Sleep(time.Second)
			p.Release()
		}, true},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, Config{Concurrency: 8})
				g.Pause(time.Minute)
				if _, ok := g.TryAcquire(Call{}); ok {
					t.Error("admitted while closed")
				}
				time.Sleep(time.Minute)
				go c.end(t, g)
				synctest.Wait()
				if _, ok := g.TryAcquire(Call{}); ok {
					t.Error("a second call while the probe is out")
				}
				var waits []<-chan *Permit
				for range 8 {
					w, _ := queued(t, g, Call{})
					waits = append(waits, w)
				}
				time.Sleep(time.Second)
				n := 0
				for _, w := range waits {
					if p := started(w); p != nil {
						n++
						defer p.Release()
					}
				}
				// The next probe, or a quarter of the permits.
				if want := map[bool]int{false: 1, true: 2}[c.open]; n != want {
					t.Errorf("%d started after the probe, want %d", n, want)
				}
				if c.open {
					for _, want := range []int{4, 8} {
						time.Sleep(time.Second)
						synctest.Wait()
						if n := g.Stats().InUse; n != want {
							t.Errorf("%d in use, want %d", n, want)
						}
					}
				}
				for _, w := range waits { // the rest, so that nothing is left
					if p := started(w); p != nil {
						defer p.Release()
					}
				}
				g.Close()
			})
		})
	}
}

// The rate opens in steps of a quarter, a half and all of it.
func TestRampOfTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(100, time.Second)}, MaxWait: -1})
		g.Pause(10 * time.Second)
		start := time.Now()
		var at []time.Time
		for time.Since(start) < 15*time.Second {
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { at = append(at, time.Now()); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if at[0].Sub(start) != 10*time.Second {
			t.Errorf("first start after %v", at[0].Sub(start))
		}
		n := make([]int, 6)
		for _, a := range at {
			n[int(a.Sub(at[0])/time.Second)]++
		}
		for i, want := range []int{25, 50, 99, 99, 99} {
			if n[i] < want-1 || n[i] > want+1 {
				t.Errorf("starts by second %v, want 25 50 99 99 99", n)
				break
			}
		}
		if b := g.Stats().Blocked; b["pause"] < 11*time.Second || b["pause"] > 12*time.Second+20*time.Millisecond {
			t.Errorf("the ramp counts as pause: %v", b)
		}
	})
}

// The ramp ends by itself for those who only try, and a change of the limits
// after its end does not bring it back.
func TestRampEndsForTryAcquire(t *testing.T) {
	for _, update := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Limits: []Limit{{N: 100, Per: time.Second, Burst: 1, Bucket: true}}}
			g := newGate(t, cfg)
			g.Pause(time.Second)
			time.Sleep(time.Second)
			hold(t, g, "", 1)[0].Release()
			time.Sleep(time.Minute)
			if update {
				cfg.Limits[0].Burst = 2
				if err := g.Update(cfg); err != nil {
					t.Fatal(err)
				}
				cfg.Limits[0].Burst = 1
				if err := g.Update(cfg); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for range 1000 {
				if p, ok := g.TryAcquire(Call{}); ok {
					p.Release()
					n++
				}
				time.Sleep(time.Millisecond)
			}
			if n < 98 {
				t.Errorf("update %v: %d starts in a second, want 100", update, n)
			}
		})
	}
}

// Each throttle within the configured limit takes a tenth of the rate, and quiet
// times give it back. A probe that is refused takes nothing.
func TestThrottlesSlowTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(100, time.Second)}, MaxWait: -1})
		rate := func() float64 { return math.Round(1000*g.Stats().Rate) / 1000 }
		for _, want := range []float64{0.9, 0.81, 0.729} {
			d := throttle(t, g, Outcome{Hinted: true, RetryAfter: time.Second})
			if r := rate(); r != want {
				t.Errorf("rate %v, want %v", r, want)
			}
			time.Sleep(d)
			time.Sleep(throttle(t, g, Outcome{Hinted: true, RetryAfter: time.Second}))
			if r := rate(); r != want {
				t.Errorf("rate %v after a refused probe, want %v", r, want)
			}
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		start := time.Now()
		n := 0
		for time.Since(start) < 5*time.Second {
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if n < 355 || n > 365 {
			t.Errorf("%d starts in 5 s at 72.9 %% of 100/s", n)
		}
		time.Sleep(5 * time.Minute)
		if r := rate(); r < 0.95*0.81 || r >= 0.81 {
			t.Errorf("after 5 minutes: rate %v, want it within a twentieth of what was refused", r)
		}
		time.Sleep(55 * time.Minute) // nobody calls
		if r := rate(); r != 1 {
			t.Errorf("after an hour: rate %v", r)
		}
		// Without a limit there is no rate to lower.
		g = newGate(t, Config{})
		throttle(t, g, Outcome{})
		if r := g.Stats().Rate; r != 1 {
			t.Errorf("without a limit: rate %v", r)
		}
	})
}

// A pause reaches those who wait: whoever cannot wait that long is refused at
// once and told when to come back (curl/curl#7676).
func TestPauseRefusesThoseWhoCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Lanes: []Lane{{Name: "long", MaxWait: time.Minute}, {Name: "short", MaxWait: 20 * time.Second}}})
		held := hold(t, g, "long", 1)
		soon, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		byDeadline := make(chan error, 1)
		go func() { _, err := g.Acquire(soon, Call{}); byDeadline <- err }()
		synctest.Wait()
		_, short := queued(t, g, Call{Lane: "short"})
		long, _ := queued(t, g, Call{Lane: "long"})
		patient, _ := queued(t, g, Call{Lane: "short", Patient: true})
		start := time.Now()
		g.Pause(30 * time.Second)
		for c, want := range map[<-chan error]error{byDeadline: ErrDeadline, short: ErrPaused} {
			err := <-c
			var r *Rejected
			if !errors.As(err, &r) || !errors.Is(err, want) || r.RetryAfter != 30*time.Second || time.Since(start) != 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		held[0].Release()
		(<-patient).Release() // of the lane that has had less
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("the patient one started after %v", d)
		}
		(<-long).Release()
		idle(t, g)
	})
}

// A delay of exactly MaxWait is waited for; the jitter is not the provider's
// (openai/openai-python#3555: 120 waits, 121 does not).
func TestPauseOfExactlyMaxWait(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Concurrency: 30, MaxWait: 120 * time.Second, Retry: Retry{Attempts: 2}})
			start := time.Now()
			var wg sync.WaitGroup
			for range 30 { // more than the probe must get through
				wg.Go(func() {
					n := 0
					err := Do(t.Context(), g, Call{}, func(context.Context) error {
						time.Sleep(time.Second)
						if n++; n == 1 {
							return After(errPushedBack, 120*time.Second)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			within(t, "all", time.Since(start), 120*time.Second, 130*time.Second)
			within(t, "121", throttle(t, g, Outcome{Hinted: true, RetryAfter: 121 * time.Second}), 121*time.Second, 126*time.Second)
			start = time.Now()
			if _, err := g.Acquire(t.Context(), Call{}); !errors.Is(err, ErrPaused) || time.Since(start) != 0 {
				t.Errorf("121: %v after %v", err, time.Since(start))
			}
			idle(t, g)
		})
	}
}

func TestPauseSurvivesUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Concurrency: 4, Limits: []Limit{Per(10, time.Second)}}
		g := newGate(t, cfg)
		g.Pause(30 * time.Second)
		start := time.Now()
		time.Sleep(10 * time.Second)
		cfg.Concurrency, cfg.Limits = 40, []Limit{Per(100, time.Second), {Name: "new", N: 5000, Per: time.Minute}}
		if err := g.Update(cfg); err != nil {
			t.Fatal(err)
		}
		if d := g.Stats().Paused; d != 20*time.Second {
			t.Errorf("paused for %v", d)
		}
		p, err := g.Acquire(t.Context(), Call{})
		if err != nil || time.Since(start) != 30*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("a second call while the probe is out")
		}
		p.Release()
		if r := g.Stats().Rate; r != 0.25 {
			t.Errorf("the rate after the probe is %v", r)
		}
		if err := g.Update(cfg); err != nil {
			t.Fatal(err)
		}
		if r := g.Stats().Rate; r != 0.25 {
			t.Errorf("the update has ended the ramp: %v", r)
		}
		idle(t, g)
	})
}

// A gate that was made outside of a synctest bubble, whose clock starts in
// 2000, keeps what is in force there, and no longer than that.
func TestPauseInABubble(t *testing.T) {
	g := newGate(t, Config{Limits: []Limit{{N: 5, Per: time.Minute, Burst: 5}}, Concurrency: 10})
	if n := take(g); n != 5 {
		t.Fatalf("took %d", n)
	}
	throttle := func(t *testing.T) {
		tries := g.Tries(t.Context(), Call{Costs: map[string]int64{Requests: 0}})
		if p, err := tries.Next(); err != nil {
			t.Error(err)
		} else {
			tries.Again(Outcome{Err: errPushedBack, Throttled: true, Hinted: true, RetryAfter: 30 * time.Second})
			p.Release()
		}
	}
	throttle(t)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if d := g.Stats().Paused; d < 29*time.Second || d > 34*time.Second {
				t.Errorf("paused for %v", d)
			}
			if n := take(g); n != 0 {
				t.Errorf("%d starts", n)
			}
			start := time.Now()
			call := Call{Costs: map[string]int64{Requests: 0}}
			if err := Do(t.Context(), g, call, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
			within(t, "the pause", time.Since(start), 29*time.Second, 34*time.Second)
			time.Sleep(2 * time.Minute)
			if n := take(g); n != 5 {
				t.Errorf("%d starts after the window", n)
			}
			throttle(t)
			idle(t, g)
		})
	}
}
