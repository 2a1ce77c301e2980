package mete

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 10})
		var mu sync.Mutex
		n, ended := 0, 0
		fn := func(ctx context.Context) (int, error) {
			mu.Lock()
			n++
			me := n
			mu.Unlock()
			defer func() { mu.Lock(); ended++; mu.Unlock() }()
			d := 10 * time.Second
			if me == 3 {
				d = 100 * time.Millisecond
			}
			select {
			case <-time.After(d):
				return me, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		start := time.Now()
		v, err := Hedged(t.Context(), g, Call{}, Hedge{After: time.Second, Max: 2}, fn)
		if v != 3 || err != nil || time.Since(start) != 2100*time.Millisecond {
			t.Errorf("%d, %v after %v", v, err, time.Since(start))
		}
		synctest.Wait()
		if ended != 3 || g.Stats().Attempts != 3 {
			t.Errorf("%d ended, %d attempts", ended, g.Stats().Attempts)
		}
		idle(t, g)
	})
}

// Each hedge is admitted on its own: never more in flight than permits
// (a bulkhead outside of the hedge let 6 calls through 1 permit).
func TestHedgesNeedPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1})
		start := time.Now()
		v, err := Hedged(t.Context(), g, Call{}, Hedge{After: time.Millisecond, Max: 5}, func(context.Context) (string, error) {
			if n := g.Stats().InUse; n != 1 {
				t.Errorf("%d in use", n)
			}
			time.Sleep(time.Second)
			return "first", nil
		})
		if v != "first" || err != nil || time.Since(start) != time.Second {
			t.Errorf("%q, %v after %v", v, err, time.Since(start))
		}
		synctest.Wait()
		if a := g.Stats().Attempts; a != 1 {
			t.Errorf("%d attempts", a)
		}
		idle(t, g)
	})
}

func TestHedgedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 3})
		boom := errors.New("boom")
		if _, err := Hedged(t.Context(), g, Call{}, Hedge{After: time.Second}, func(context.Context) (int, error) { return 0, boom }); err != boom {
			t.Errorf("got %v", err)
		}
		func() {
			defer func() {
				if p, ok := recover().(*Panic); !ok || p.Value != "boom" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = Hedged(t.Context(), g, Call{}, Hedge{After: time.Second}, func(context.Context) (int, error) { panic("boom") })
		}()
		if _, err := Hedged(t.Context(), g, Call{}, Hedge{After: time.Second}, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }); err != errGoexit {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := Hedged(ctx, g, Call{}, Hedge{After: time.Second}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		idle(t, g)
	})
}

// The winner's success ends the others before its permit is free: neither one
// that waits for it nor one that would begin then is run (the Observer holds
// the winner up after its release).
func TestHedgeIsNotRunAfterTheWin(t *testing.T) {
	for after, running := range map[time.Duration]int{time.Millisecond: 1, 1500 * time.Millisecond: 3} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Concurrency: running, Observer: &Observer{Ended: func(Ending) { time.Sleep(time.Second) }}})
			runs := 0
			v, err := Hedged(t.Context(), g, Call{}, Hedge{After: after, Max: 1}, func(context.Context) (int, error) {
				runs++
				time.Sleep(time.Second)
				return runs, nil
			})
			time.Sleep(time.Minute)
			if v != 1 || err != nil || runs != 1 {
				t.Errorf("after %v: %d, %v, %d runs", after, v, err, runs)
			}
			idle(t, g)
		})
	}
}

// Whatever ends a hedged call, no call of it is left running, it waits for none
// that could not help any more, and there are never more than were asked for.
func TestHedgesEndTogether(t *testing.T) {
	for name, c := range map[string]struct {
		fn          func(ctx context.Context, run int) error
		takes       time.Duration
		runs, ended int // ended of itself or by its context, when the call returns
	}{
		"fails before a hedge": {func(context.Context, int) error { return errAgain }, 0, 1, 1},
		"the hedge panics": {func(ctx context.Context, run int) error {
			if run == 2 {
				panic("boom")
			}
			<-ctx.Done()
			return ctx.Err()
		}, time.Second, 2, 2},
		"one does not listen": {func(ctx context.Context, run int) error {
			if run == 1 {
				time.Sleep(time.Minute)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, 10 * time.Second, 3, 2},
		"all are slow": {func(context.Context, int) error { time.Sleep(8 * time.Second); return nil }, 8 * time.Second, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, Config{Concurrency: 10})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var mu sync.Mutex
				runs, ended := 0, 0
				start := time.Now()
				func() {
					defer func() { _ = recover() }()
					_, _ = Hedged(ctx, g, Call{}, Hedge{After: time.Second, Max: 2}, func(ctx context.Context) (int, error) {
						mu.Lock()
						runs++
						run := runs
						mu.Unlock()
						defer func() { mu.Lock(); ended++; mu.Unlock() }()
						return run, c.fn(ctx, run)
					})
				}()
				took := time.Since(start)
				synctest.Wait()
				mu.Lock()
				if took != c.takes || runs != c.runs || ended != c.ended {
					t.Errorf("after %v: %d runs, %d ended", took, runs, ended)
				}
				mu.Unlock()
				time.Sleep(2 * time.Minute)
				mu.Lock()
				if ended != runs || runs != c.runs {
					t.Errorf("later: %d of %d ended", ended, runs)
				}
				mu.Unlock()
				idle(t, g)
			})
		})
	}
}

func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := Retry{Attempts: 4, Delay: time.Second}
		a, b, c := newGate(t, Config{Name: "a", Retry: retry}), newGate(t, Config{Name: "b", Retry: retry}), newGate(t, Config{Name: "c"})
		down := errors.New("down")
		calls := map[string]int{}
		choice := func(g *Gate, err error) Choice[string] {
			return Choice[string]{Gate: g, Do: func(context.Context) (string, error) { calls[g.Name()]++; return g.Name(), err }}
		}
		v, err := Fallback(t.Context(), 0, choice(a, down), choice(b, nil))
		if v != "b" || err != nil || calls["a"] != 4 {
			t.Errorf("%q, %v, %v", v, err, calls)
		}
		clear(calls)
		// One budget of attempts over all.
		_, err = Fallback(t.Context(), 6, choice(a, down), choice(b, down), choice(c, nil))
		if !errors.Is(err, down) || calls["a"] != 4 || calls["b"] != 2 || calls["c"] != 0 {
			t.Errorf("%v, %v", err, calls)
		}
		clear(calls)
		// A choice that is closed for long is left at once.
		a.Pause(time.Hour)
		start := time.Now()
		v, err = Fallback(t.Context(), 6, choice(a, nil), choice(b, nil))
		if v != "b" || err != nil || calls["a"] != 0 || time.Since(start) != 0 {
			t.Errorf("%q, %v, %v after %v", v, err, calls, time.Since(start))
		}
		// What is wrong with the call is wrong everywhere.
		if _, err = Fallback(t.Context(), 0, choice(c, Permanent(down)), choice(b, nil)); err != down || calls["b"] != 1 {
			t.Errorf("%v, %v", err, calls)
		}
		// One deadline over all.
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		clear(calls)
		if _, err = Fallback(ctx, 0, choice(b, down), choice(c, nil)); calls["b"] != 2 || calls["c"] != 1 || err != nil {
			t.Errorf("%v, %v", err, calls)
		}
	})
}

// A follower's context is its own: it neither ends with the leader's, nor does
// its end disturb the others.
func TestMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Merge[string, int]
		runs := 0
		fn := func(ctx context.Context) (int, error) {
			runs++
			select {
			case <-time.After(time.Second):
				return 42, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				ctx := t.Context()
				if i < 2 { // the leader and one more give up
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
				}
				v, shared, err := m.Do(ctx, "k", fn)
				switch {
				case i < 2 && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("%d: %v", i, err)
				case i >= 2 && (v != 42 || err != nil || !shared):
					t.Errorf("%d: %d, %v, shared %v", i, v, err, shared)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if runs != 1 || len(m.calls) != 0 {
			t.Errorf("%d runs, %d calls kept", runs, len(m.calls))
		}
		// When the last one leaves, the call ends too.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, _, err := m.Do(ctx, "k", fn); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		for i := range 3 {
			wg.Go(func() {
				defer func() {
					if p, ok := recover().(*Panic); !ok || p.Value != "boom" {
						t.Errorf("%d recovered %v", i, p)
					}
				}()
				_, _, _ = m.Do(t.Context(), "p", func(context.Context) (int, error) {
					time.Sleep(time.Second)
					panic("boom")
				})
			})
		}
		wg.Wait()
	})
}

// When nobody waits any more the context of the call ends, and the next call of
// the key is a new one, also while the old one is still on its way out.
func TestMergeAfterTheLastHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Merge[string, int]
		var ended []time.Duration
		runs, start := 0, time.Now()
		fn := func(ctx context.Context) (int, error) {
			runs++
			run := runs
			if run == 1 { // slow to notice
				<-ctx.Done()
				ended = append(ended, time.Since(start))
				time.Sleep(time.Second)
				return 0, ctx.Err()
			}
			time.Sleep(5 * time.Second)
			return run, nil
		}
		var wg sync.WaitGroup
		for _, patience := range []time.Duration{time.Second, 3 * time.Second} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, _, err := m.Do(ctx, "k", fn); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != patience {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if len(ended) != 1 || ended[0] != 3*time.Second {
			t.Errorf("the call's context ended after %v", ended)
		}
		for i := range 3 { // the last one when the first call has ended for good
			wg.Go(func() {
				v, shared, err := m.Do(t.Context(), "k", fn)
				if v != 2 || err != nil || shared != (i > 0) {
					t.Errorf("%d: %d, %v, %v", i, v, shared, err)
				}
			})
			time.Sleep(time.Duration(i+1) * 600 * time.Millisecond)
		}
		wg.Wait()
		if runs != 2 || len(m.calls) != 0 {
			t.Errorf("%d runs, %d calls kept", runs, len(m.calls))
		}
	})
}

func TestFallbackErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := errors.New("one"), errors.New("two")
		g := newGate(t, Config{Retry: Retry{Attempts: 1}})
		fails := func(err error) Choice[int] {
			return Choice[int]{Gate: g, Call: Call{Weight: 1}, Do: func(context.Context) (int, error) { return 0, err }}
		}
		if _, err := Fallback(t.Context(), 0, fails(one), fails(two)); !errors.Is(err, one) || !errors.Is(err, two) {
			t.Errorf("of one and two there is %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		last := Choice[int]{Gate: g, Do: func(context.Context) (int, error) { cancel(); return 0, one }}
		if _, err := Fallback(ctx, 0, last, fails(two)); err != one {
			t.Errorf("nobody waits any more, and the error is %v", err)
		}
	})
}
