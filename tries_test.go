package mete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errAgain = errors.New("again")

// A retry goes to the head of its lane, but not ahead of a call that was there
// before its first attempt.
func TestRetryGoesToTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Retry: Retry{Attempts: 2, Delay: 10 * time.Millisecond}})
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		call := func(name string, fails bool) {
			wg.Go(func() {
				n := 0
				if err := Do(t.Context(), g, Call{}, func(context.Context) error {
					n++
					mu.Lock()
					order = append(order, fmt.Sprint(name, n))
					mu.Unlock()
					time.Sleep(100 * time.Millisecond)
					if fails && n == 1 {
						return errAgain
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		call("a", true) // fails at 100 ms, back in line at 110 ms
		call("b", true) // fails at 200 ms: behind a, before c
		call("c", false)
		call("d", false)
		wg.Wait()
		if want := []string{"a1", "b1", "a2", "b2", "c1", "d1"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		idle(t, g)
	})
	// An older waiter that has not been served yet stays ahead.
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 2, Retry: Retry{Attempts: 2, Delay: time.Millisecond}})
		held := hold(t, g, "", 1)
		old, _ := queued(t, g, Call{Weight: 2})
		time.Sleep(time.Millisecond)
		young := g.Tries(t.Context(), Call{})
		next := make(chan *Permit, 1)
		go func() {
			if _, err := young.Next(); err != nil {
				t.Error(err)
				return
			}
			if !young.Again(Outcome{Err: errAgain, Repeat: true}) {
				t.Error("not repeated")
			}
			p, err := young.Next()
			if err != nil {
				t.Error(err)
			}
			next <- p
		}()
		synctest.Wait()
		late, _ := queued(t, g, Call{Weight: 2})
		held[0].Release()
		p := started(old)
		if p == nil {
			t.Fatal("the oldest does not run")
		}
		p.Release()
		time.Sleep(time.Second) // young fails once and comes back while late holds
		p = started(late)
		if p == nil {
			t.Fatal("the third does not run")
		}
		if started(next) != nil {
			t.Error("three permits of two")
		}
		p.Release()
		(<-next).Release()
		idle(t, g)
	})
}

// The place of a retry is found against all that wait, whatever is among them.
func TestPlaceOfARetry(t *testing.T) {
	q := &newGate(t, Config{Concurrency: 1}).q
	l := q.lanes[0]
	add := func(born int, again bool) {
		q.enqueue(&waiter{lane: l, weight: 1, born: time.Duration(born), flight: &flight{}}, again)
	}
	for _, born := range []int{10, 20, 30} {
		add(born, false)
	}
	for _, born := range []int{15, 5, 25, 10, 35} {
		add(born, true)
	}
	var got []int
	for w := l.first; w != nil; w = w.next {
		got = append(got, int(w.born))
	}
	if want := []int{5, 10, 10, 15, 20, 25, 30, 35}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	for w := l.last; w != nil; w = w.prev {
		if w.prev != nil && w.prev.next != w {
			t.Error("the list is broken")
		}
	}
}

// Throttles and what was never sent do not use the retry budget up; failures
// do.
func TestBudgetCountsFailuresOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1, Retry: Retry{Attempts: 2, Delay: time.Millisecond, Budget: 0.2}})
		run := func(o Outcome) error {
			tries := g.Tries(t.Context(), Call{})
			p, err := tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !tries.Again(o) {
				p.Release()
				return tries.Refusal()
			}
			p, err = tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			tries.Again(Outcome{Answered: true})
			p.Release()
			return nil
		}
		for range 50 {
			if err := run(Outcome{Err: errAgain, Repeat: true, Free: true}); err != nil {
				t.Fatal(err)
			}
			if err := run(Outcome{Err: errAgain, Repeat: true, Throttled: true, Hinted: true, RetryAfter: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		refused := 0
		for range 1000 {
			if err := run(Outcome{Err: errAgain, Repeat: true}); errors.Is(err, ErrBudget) && errors.Is(err, errAgain) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if repeated := 1000 - refused; repeated < 200 || repeated > 211 {
			t.Errorf("%d of 1000 repeated at a budget of a fifth", repeated)
		}
		idle(t, g)
	})
}

// A permit that is kept in the back-off counts in full; when there are fewer
// permits than are in use its holder still gets its tokens, else it would wait
// for itself.
func TestKeptPermitAfterShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Concurrency: 2, Limits: []Limit{Per(1, time.Second)}, Retry: Retry{Attempts: 2, Delay: time.Second, KeepPermit: true}}
		g := newGate(t, cfg)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				n := 0
				if err := Do(t.Context(), g, Call{}, func(context.Context) error {
					time.Sleep(3 * time.Second)
					if n++; n == 1 {
						return errAgain
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(3500 * time.Millisecond)
		if n := g.Stats().InUse; n != 2 {
			t.Errorf("%d in use during the back-off", n)
		}
		cfg.Concurrency = 1
		if err := g.Update(cfg); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := g.Stats().Attempts; n != 4 {
			t.Errorf("%d attempts", n)
		}
		idle(t, g)
	})
}

// A kept permit comes back when the call ends in the back-off, by its context
// or for good.
func TestKeptPermitComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Retry: Retry{Attempts: 3, Delay: time.Minute, KeepPermit: true}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := Do(ctx, g, Call{}, func(context.Context) error { return errAgain })
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errAgain) {
			t.Error(err)
		}
		idle(t, g)
		go func() { _ = Do(t.Context(), g, Call{}, func(context.Context) error { return errAgain }) }()
		synctest.Wait()
		g.Close()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		idle(t, g)
	})
}

// One permit per live attempt, each given back once (hatchet-dev/hatchet#380).
func TestOnePermitPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 3, Retry: Retry{Attempts: 3, Delay: time.Second}})
		var mu sync.Mutex
		live, peak := 0, 0
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				n := 0
				if err := Do(t.Context(), g, Call{}, func(context.Context) error {
					mu.Lock()
					live++
					peak = max(peak, live)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					live--
					mu.Unlock()
					if n++; n < 3 {
						return errAgain
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s := g.Stats(); s.Attempts != 9 || s.Retries != 6 || peak != 3 {
			t.Errorf("%d attempts, %d retries, %d at once", s.Attempts, s.Retries, peak)
		}
		idle(t, g)
	})
}

// A retry that would come after the deadline is not waited for, and the error
// says so (curl/curl#7676, platinummonkey/go-concurrency-limits#23).
func TestNoRetryBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Retry: Retry{Attempts: 4, Delay: 2 * time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		n := 0
		err := Do(ctx, g, Call{}, func(context.Context) error { n++; return errAgain })
		var r *Rejected
		if !errors.As(err, &r) || r.Reason != Deadline || r.Bound != "backoff" || r.Attempts != 2 || !errors.Is(err, errAgain) {
			t.Errorf("%v", err)
		}
		if n != 2 || time.Since(start) != 2*time.Second {
			t.Errorf("%d attempts in %v", n, time.Since(start))
		}
		idle(t, g)
	})
}

// The waits of a call are exactly the time that it queued, split by what
// blocked the head of the queue.
func TestWaitsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: -1,
			Limits: []Limit{{Name: "tokens", Unit: "tokens", N: 1, Per: time.Second, Burst: 1, Bucket: true}},
			Retry:  Retry{Attempts: 3, Delay: 7 * time.Millisecond}})
		token := Call{Costs: map[string]int64{"tokens": 1}}
		held, err := g.Acquire(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, held.Release)
		tries := g.Tries(t.Context(), token)
		var want Waits
		step := func(w Waits) *Permit {
			t.Helper()
			start, gone := time.Now(), tries.Backoff()
			p, err := tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start) - (tries.Backoff() - gone); d != w.Queue() || p.Waits().Queue() != d {
				t.Errorf("queued %v, says %v, want %v", d, p.Waits().Queue(), w.Queue())
			}
			want = want.add(w)
			if got := p.Waits(); got != w {
				t.Errorf("waited %+v, want %+v", got, w)
			}
			if got := tries.Waits(); got != want {
				t.Errorf("waited in all %+v, want %+v", got, want)
			}
			return p
		}
		// 300 ms for the permit, then 700 for the token.
		step(Waits{Semaphore: 300 * time.Millisecond, Limit: 700 * time.Millisecond, Bound: "limit:tokens"})
		time.Sleep(100 * time.Millisecond)
		g.Pause(5 * time.Second)
		if !tries.Again(Outcome{Err: errAgain, Repeat: true}) {
			t.Fatal("not repeated")
		}
		// The pause has begun 7 ms before.
		p := step(Waits{Pause: 4993 * time.Millisecond, Bound: "pause"})
		tries.Again(Outcome{Answered: true})
		p.Release()
		if tries.Backoff() != 7*time.Millisecond {
			t.Errorf("backed off %v", tries.Backoff())
		}
		blocked := g.Stats().Blocked
		if blocked["semaphore"] != want.Semaphore || blocked["limit:tokens"] != want.Limit || blocked["pause"] != want.Pause {
			t.Errorf("the gate says %v, the call %+v", blocked, want)
		}
		idle(t, g)
	})
}

// A refusal tells how long the call queued until then, and for what.
func TestRefusalTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1})
		held := hold(t, g, "", 1)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { _, err := g.Acquire(ctx, Call{}); failed <- err }()
		time.Sleep(time.Second)
		g.Pause(10 * time.Second)
		time.Sleep(3 * time.Second)
		cancel()
		var r *Rejected
		if err := <-failed; !errors.As(err, &r) || r.Waited != 4*time.Second || r.Bound != "pause" || r.Reason != Canceled {
			t.Errorf("%v", err)
		}
		held[0].Release()
		idle(t, g)
	})
}

// The grant and the end of the context in one instant: the caller has gone, so
// permit and tokens come back (agronholm/anyio#947, python/cpython#90155).
func TestGrantAndCancelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Limits: []Limit{{N: 1000, Per: time.Minute, Burst: 1000}}})
		for range 300 {
			held := hold(t, g, "", 1)
			free := g.Stats().Limits[0].Free
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				p, err := g.Acquire(ctx, Call{})
				p.Release()
				failed <- err
			}()
			synctest.Wait()
			next, _ := queued(t, g, Call{})
			held[0].Release()
			cancel()
			err := <-failed
			(<-next).Release()
			synctest.Wait()
			s := g.Stats()
			if used := free - s.Limits[0].Free; s.InUse != 0 || (err != nil) != (used == 1) {
				t.Fatalf("%v, but %d tokens for two calls, in use %d", err, used, s.InUse)
			}
			time.Sleep(time.Second)
		}
		if a := g.Stats().Attempts; a < 600 || a > 900 {
			t.Errorf("%d attempts", a)
		}
		idle(t, g)
	})
}

// A call whose true cost was told without the stamp of its start was sent all
// the same: it leaves the window like any other.
func TestSettledButNotStamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{{N: 1, Per: time.Second}, {Unit: "tokens", N: 10, Per: time.Second, Burst: 10}}})
		p, err := g.Acquire(t.Context(), Call{Wire: true, Costs: map[string]int64{"tokens": 5}})
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(map[string]int64{"tokens": 7})
		p.Release()
		if n := take(g); n != 0 {
			t.Errorf("%d starts in the same second", n)
		}
		time.Sleep(1010 * time.Millisecond)
		if n := take(g); n != 1 {
			t.Error("the start never leaves the window")
		}
	})
}
