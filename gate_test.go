package mete

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newGate(t testing.TB, cfg Config) *Gate {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// idle checks that nothing is left behind.
func idle(t testing.TB, g *Gate) {
	t.Helper()
	s := g.Stats()
	if s.InUse != 0 || s.Waiting != 0 || s.Misuse != 0 {
		t.Errorf("left behind: in use %d, waiting %d, misuse %d", s.InUse, s.Waiting, s.Misuse)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		t.Error("a timer is left")
	}
}

// most is the largest number of instants in any half-open window.
func most(at []time.Time, window time.Duration) int {
	n, lo := 0, 0
	for hi := range at {
		for at[hi].Sub(at[lo]) >= window {
			lo++
		}
		n = max(n, hi-lo+1)
	}
	return n
}

func TestPermitAndTokensAreOneDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 5, Limits: []Limit{Per(20, time.Second)}})
		var mu sync.Mutex
		var at []time.Time
		inFlight, peak := 0, 0
		var wg sync.WaitGroup
		stall := time.Now().Add(5 * time.Second)
		for range 200 {
			wg.Go(func() {
				err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
					mu.Lock()
					at = append(at, time.Now())
					inFlight++
					peak = max(peak, inFlight)
					mu.Unlock()
					if d := time.Until(stall); d > 0 {
						time.Sleep(d) // nobody answers for 5 s
					}
					time.Sleep(30 * time.Millisecond)
					mu.Lock()
					inFlight--
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// A token is not spent while its call waits for a permit: after the
		// stall nothing starts in a burst.
		if n := most(at, time.Second); n > 20 || peak > 5 || len(at) != 200 {
			t.Errorf("%d in a second, %d in flight, %d calls", n, peak, len(at))
		}
		if s := g.Stats(); s.Blocked["semaphore"] < 4*time.Second || s.Blocked["limit:20/s"] < 9*time.Second {
			t.Errorf("blocked %v", s.Blocked)
		}
		idle(t, g)
	})
}

// All or nothing: while one limit refuses, the other is not touched
// (vutran1710/PyrateLimiter#189).
func TestLimitsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: 100 * time.Millisecond, Limits: []Limit{
			{Name: "rpm", N: 10, Per: time.Minute, Burst: 10},
			{Name: "tpm", Unit: "tokens", N: 1000, Per: time.Minute, Burst: 1000, Bucket: true},
		}})
		all, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": 1000, Requests: 0}})
		if err != nil {
			t.Fatal(err)
		}
		all.Release()
		for range 5 {
			_, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": 100}})
			var r *Rejected
			if !errors.As(err, &r) || r.Reason != WaitTimeout || r.Bound != "limit:tpm" || r.RetryAfter != 6*time.Second {
				t.Fatalf("got %v", err)
			}
		}
		if s := g.Stats(); s.Limits[0].Free != 10 {
			t.Errorf("the other limit has %d of 10 left", s.Limits[0].Free)
		}
		time.Sleep(time.Minute)
		for range 10 {
			if _, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": 100}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The cost is reserved when the call is admitted, not when it is known
// (BerriAI/litellm#18730), and debt is paid off before the next call.
func TestEstimateThenSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{{Name: "tpm", Unit: "tokens", N: 100, Per: time.Minute, Burst: 100, Bucket: true}}})
		call := Call{Costs: map[string]int64{"tokens": 60}}
		p, ok := g.TryAcquire(call)
		if !ok {
			t.Fatal("refused")
		}
		for range 4 {
			if _, ok := g.TryAcquire(call); ok {
				t.Fatal("a second call was admitted")
			}
		}
		p.Settle(map[string]int64{"tokens": 130})
		p.Settle(map[string]int64{"tokens": 0})
		p.Release()
		if free := g.Stats().Limits[0].Free; free != -30 {
			t.Errorf("free is %d", free)
		}
		d, err := g.Peek(Call{Costs: map[string]int64{"tokens": 10}})
		if err != nil || d != 24*time.Second {
			t.Errorf("10 more in %v, %v", d, err)
		}
		start := time.Now()
		if _, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": 10}}); err != nil || time.Since(start) != 24*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": 101}}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("above the capacity: %v", err)
		}
	})
}

func TestStartIsStampedAtTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(10, time.Second)}})
		// A cold start: all connections come up at the same moment.
		var mu sync.Mutex
		var wire []time.Time
		var wg sync.WaitGroup
		up := time.Now().Add(3 * time.Second)
		for range 40 {
			wg.Go(func() {
				p, err := g.Acquire(t.Context(), Call{Wire: true})
				if err != nil {
					t.Error(err)
					return
				}
				if d := time.Until(up); d > 0 {
					time.Sleep(d)
				}
				p.Sent()
				mu.Lock()
				wire = append(wire, time.Now())
				mu.Unlock()
				p.Release()
			})
		}
		wg.Wait()
		if n := most(wire, time.Second); n > 10 {
			t.Errorf("%d starts in a second", n)
		}
		idle(t, g)
	})
}

func TestCancelledCallCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(1, time.Second)}})
		first, _ := g.Acquire(t.Context(), Call{})
		first.Release()
		start := time.Now()
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			if _, err := g.Acquire(ctx, Call{}); !errors.Is(err, ErrDeadline) {
				t.Fatal(err)
			}
			cancel()
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("a call that cannot be served in time waited %v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := g.Acquire(ctx, Call{}); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p, err := g.Acquire(t.Context(), Call{Wire: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 1010*time.Millisecond {
			t.Errorf("granted after %v", d)
		}
		// Nothing was sent: permit and token come back, the next may start now.
		p.Release()
		if d, _ := g.Peek(Call{}); d != 0 {
			t.Errorf("after a cancelled grant the next start is in %v", d)
		}
	})
}

// A permit is not held in back-off (argoproj/argo-workflows#9875), unless
// asked for; each attempt is admitted and pays.
func TestRetryFreesThePermit(t *testing.T) {
	for _, tc := range []struct {
		keep bool
		want time.Duration
	}{{false, 1100 * time.Millisecond}, {true, 3500 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Concurrency: 4, Retry: Retry{Attempts: 2, Delay: 500 * time.Millisecond, KeepPermit: tc.keep}})
			start := time.Now()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					n := 0
					err := Do(t.Context(), g, Call{}, func(context.Context) error {
						time.Sleep(100 * time.Millisecond)
						if n++; n == 1 {
							return errors.New("once")
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if d := time.Since(start); d != tc.want {
				t.Errorf("keep %v: took %v, want %v", tc.keep, d, tc.want)
			}
			if s := g.Stats(); s.Attempts != 40 || s.Retries != 20 {
				t.Errorf("%d attempts, %d retries", s.Attempts, s.Retries)
			}
			idle(t, g)
		})
	}
}

// A kept permit needs tokens again; that must not wait behind a call that
// waits for the permit.
func TestKeptPermitDoesNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Limits: []Limit{Per(1, time.Second)}, Retry: Retry{Attempts: 3, Delay: time.Millisecond, KeepPermit: true}})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				n := 0
				if err := Do(t.Context(), g, Call{}, func(context.Context) error {
					if n++; n < 3 {
						return errors.New("again")
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if a := g.Stats().Attempts; a != 9 {
			t.Errorf("%d attempts", a)
		}
		idle(t, g)
	})
}

// One throttle closes the provider for everybody (curl/curl#21355); then one
// probe, then a ramp (NousResearch/hermes-agent#109234).
func TestThrottlePausesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 30, MaxWait: -1, Retry: Retry{Attempts: 4}})
		var mu sync.Mutex
		var again []time.Duration
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				n := 0
				err := Do(t.Context(), g, Call{}, func(context.Context) error {
					if n++; n == 1 {
						// At least one, so that all are in before the first is refused.
						time.Sleep(time.Duration(i+1) * time.Millisecond)
						return After(errors.New("429"), 10*time.Second)
					}
					mu.Lock()
					again = append(again, time.Since(start))
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if again[0] < 10*time.Second || again[0] > 11100*time.Millisecond {
			t.Errorf("first retry after %v", again[0])
		}
		probe := 0
		for _, d := range again {
			if d < again[0]+50*time.Millisecond {
				probe++
			}
		}
		if probe != 1 {
			t.Errorf("%d calls while the probe was out", probe)
		}
		if s := g.Stats(); s.Attempts != 60 || s.Blocked["pause"] < 9*time.Second {
			t.Errorf("%d attempts, blocked %v", s.Attempts, s.Blocked)
		}
		idle(t, g)
	})
}

// A pause that is longer than the caller can wait is an error at once
// (curl/curl#7676).
func TestPauseBeyondPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: 120 * time.Second, Retry: Retry{Attempts: 4}})
		n := 0
		call := func(d time.Duration) error {
			n = 0
			return Do(t.Context(), g, Call{}, func(context.Context) error {
				if n++; n == 1 {
					return After(errors.New("429"), d)
				}
				return nil
			})
		}
		start := time.Now()
		var r *Rejected
		if err := call(150 * time.Second); !errors.As(err, &r) || r.Reason != Paused || r.RetryAfter < 150*time.Second || r.Attempts != 1 || !errors.Is(err, ErrPaused) {
			t.Errorf("got %v", err)
		}
		if err := call(0); !errors.As(err, &r) || r.Reason != Paused || n != 0 {
			t.Errorf("while closed: %v, %d attempts", err, n)
		}
		if time.Since(start) != 0 {
			t.Errorf("waited %v", time.Since(start))
		}
		time.Sleep(160 * time.Second)
		if err := call(100 * time.Second); err != nil || n != 2 {
			t.Errorf("%v after %d attempts", err, n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		err := Do(ctx, g, Call{}, func(context.Context) error { return After(errors.New("429"), 5*time.Second) })
		if !errors.Is(err, ErrDeadline) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		idle(t, g)
	})
}

// However the function ends, the permit is free (llm-d/llm-d-batch-gateway#206).
func TestPermitIsFreeAfterPanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 2})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				defer func() {
					if r := recover(); r != nil && r != fmt.Sprint("boom", i) {
						t.Errorf("recovered %v", r)
					}
				}()
				_ = Do(t.Context(), g, Call{}, func(context.Context) error {
					time.Sleep(time.Millisecond)
					switch {
					case i%3 == 0:
						panic(fmt.Sprint("boom", i))
					case i%5 == 0:
						runtime.Goexit()
					}
					return nil
				})
			})
		}
		wg.Wait()
		idle(t, g)
	})
}

func TestNestedUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Name: "geo", Concurrency: 2})
		other := newGate(t, Config{Name: "other", Concurrency: 1})
		err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
			return Do(ctx, other, Call{}, func(ctx context.Context) error {
				return Do(ctx, g, Call{}, func(context.Context) error { return nil })
			})
		})
		if !errors.Is(err, ErrNested) || Sent(err) {
			t.Errorf("got %v", err)
		}
		idle(t, g)
		idle(t, other)
	})
}

func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Timeout: time.Second, Retry: Retry{Attempts: 3, Delay: 100 * time.Millisecond}})
		n := 0
		start := time.Now()
		err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
			n++
			if d, ok := ctx.Deadline(); !ok || time.Until(d) != time.Second {
				t.Errorf("deadline %v", d)
			}
			sub, cancel := context.WithCancel(ctx)
			defer cancel()
			<-sub.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("context says %v", ctx.Err())
			}
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || n != 3 || time.Since(start) != 3200*time.Millisecond {
			t.Errorf("%v after %d attempts and %v", err, n, time.Since(start))
		}
		// Waiting for a permit does not eat the time-out (encode/httpx#1171).
		g = newGate(t, Config{Concurrency: 2, Timeout: 2 * time.Second, MaxWait: 30 * time.Second})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		idle(t, g)
	})
}

func TestTotalTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Total: 3 * time.Second, Retry: Retry{Attempts: 10, Delay: time.Second}})
		n := 0
		start := time.Now()
		err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
			n++
			time.Sleep(500 * time.Millisecond)
			return errors.New("no")
		})
		if !errors.Is(err, ErrDeadline) || n != 2 || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %d attempts and %v", err, n, time.Since(start))
		}
	})
}

// The back-off can be interrupted (maximhq/bifrost#6964).
func TestBackoffIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Retry: Retry{Attempts: 3, Delay: 30 * time.Second}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		n := 0
		err := Do(ctx, g, Call{}, func(context.Context) error { n++; return errors.New("first") })
		if !errors.Is(err, context.Canceled) || n != 1 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%v after %v and %d attempts", err, time.Since(start), n)
		}
		idle(t, g)
	})
}

func TestPermanentAndBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Retry: Retry{Attempts: 5, Delay: time.Millisecond, Budget: 0.1}})
		n, mine := 0, errors.New("mine")
		err := Do(t.Context(), g, Call{}, func(context.Context) error { n++; return Permanent(mine) })
		if err != mine || n != 1 {
			t.Errorf("%v after %d attempts", err, n)
		}
		n = 0
		for range 100 {
			err = Do(t.Context(), g, Call{}, func(context.Context) error { n++; return mine })
		}
		if !errors.Is(err, ErrBudget) || !errors.Is(err, mine) || n > 125 {
			t.Errorf("%v after %d attempts for 100 calls", err, n)
		}
	})
}

func TestZeroAdmitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(0, time.Second)}})
		if _, err := g.Acquire(t.Context(), Call{}); !errors.Is(err, ErrNever) {
			t.Errorf("rate 0: %v", err)
		}
		if err := g.Update(Config{Concurrency: -1, Limits: []Limit{Per(10, time.Second)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Acquire(t.Context(), Call{}); !errors.Is(err, ErrNever) {
			t.Errorf("no permits: %v", err)
		}
		if err := g.Update(Config{}); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if _, ok := g.TryAcquire(Call{}); !ok {
				t.Fatal("no limit, but refused")
			}
		}
	})
}

func TestUpdateReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 4, MaxWait: -1})
		var held []*Permit
		for range 4 {
			p, _ := g.TryAcquire(Call{})
			held = append(held, p)
		}
		var mu sync.Mutex
		granted := 0
		tooLarge := 0
		var wg sync.WaitGroup
		for _, weight := range []int{4, 1, 1, 1} {
			wg.Go(func() {
				p, err := g.Acquire(t.Context(), Call{Weight: weight})
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrTooLarge) {
					tooLarge++
				} else if err == nil {
					granted++
					_ = p
				}
			})
			synctest.Wait()
		}
		check := func(when string, wantGranted, wantInUse int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if s := g.Stats(); granted != wantGranted || s.InUse != wantInUse {
				t.Errorf("%s: granted %d, in use %d; want %d, %d", when, granted, s.InUse, wantGranted, wantInUse)
			}
		}
		set := func(n int) { _ = g.Update(Config{Concurrency: n, MaxWait: -1}) }
		set(1)
		check("lowered", 0, 4)
		if tooLarge != 1 {
			t.Errorf("the waiter that no longer fits: %d refused", tooLarge)
		}
		set(3) // agronholm/anyio#1223: grant from spare room, not from the difference
		check("raised, still over", 0, 4)
		held[0].Release()
		check("one released", 0, 3)
		held[1].Release()
		check("two released", 1, 3)
		set(10)
		check("raised", 3, 5)
		wg.Wait()
	})
}

func TestMaxWaitAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: 3 * time.Second, MaxQueue: 5})
		held, _ := g.TryAcquire(Call{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		reasons := map[Reason]int{}
		start := time.Now()
		for range 10 {
			wg.Go(func() {
				_, err := g.Acquire(t.Context(), Call{})
				var r *Rejected
				if !errors.As(err, &r) {
					t.Errorf("got %v", err)
					return
				}
				if r.Reason == WaitTimeout && (time.Since(start) != 3*time.Second || r.Waited != 3*time.Second || r.Bound != "semaphore" || r.InUse != 1) {
					t.Errorf("%v after %v: %+v", err, time.Since(start), r)
				}
				mu.Lock()
				reasons[r.Reason]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if reasons[WaitTimeout] != 5 || reasons[QueueFull] != 5 {
			t.Errorf("refused %v", reasons)
		}
		held.Release()
		held.Release()
		if s := g.Stats(); s.InUse != 0 || s.Misuse != 1 || s.Refused[QueueFull] != 5 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseRefusesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1})
		held, _ := g.TryAcquire(Call{})
		done := make(chan error)
		go func() { _, err := g.Acquire(t.Context(), Call{}); done <- err }()
		synctest.Wait()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, ErrDraining) {
			t.Error(err)
		}
		held.Release()
		idle(t, g)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLanesShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1, Limits: []Limit{Per(100, time.Second)}, Lanes: []Lane{{Name: "interactive", Weight: 8}, {Name: "bulk"}}})
		ctx, cancel := context.WithCancel(t.Context())
		counts := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, name := range []string{"interactive", "bulk"} {
			for range 20 {
				wg.Go(func() {
					for Do(ctx, g, Call{Lane: name}, func(context.Context) error { return nil }) == nil {
						mu.Lock()
						counts[name]++
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(90 * time.Second)
		cancel()
		wg.Wait()
		if r := float64(counts["interactive"]) / float64(counts["bulk"]); r < 7.95 || r > 8.05 {
			t.Errorf("shares %v: %.3f", counts, r)
		}
		idle(t, g)
	})
}

func BenchmarkGate(b *testing.B) {
	nop := func(context.Context) error { return nil }
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"permits", Config{Concurrency: 100}},
		{"window", Config{Concurrency: 100, Limits: []Limit{{N: 1e9, Per: time.Second, Burst: 1e9}}}},
		{"all", Config{Concurrency: 100, Limits: []Limit{{N: 1e9, Per: time.Second, Burst: 1e9}}, Retry: Retry{Attempts: 4}}},
		{"timeout", Config{Concurrency: 100, Limits: []Limit{{N: 1e9, Per: time.Second, Burst: 1e9}}, Retry: Retry{Attempts: 4}, Timeout: time.Second}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := newGate(b, c.cfg)
			b.ReportAllocs()
			for b.Loop() {
				_ = Do(context.Background(), g, Call{}, nop)
			}
		})
	}
}

// A cost above the capacity never hangs: it is refused, or opted in, admitted
// alone, and what it owes is paid off before the next call.
func TestOversize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := Limit{Name: "tpm", Unit: "tokens", N: 1000, Per: time.Minute, Oversize: "alone"}
		g := newGate(t, Config{MaxWait: -1, Limits: []Limit{tokens}})
		start := time.Now()
		acquire := func(n int64) time.Duration {
			if _, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"tokens": n}}); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		acquire(100)
		if d := acquire(3000); d < time.Minute || d > 61*time.Second {
			t.Errorf("the large call started after %v", d)
		}
		if d := acquire(1); d < 4*time.Minute || d > 242*time.Second {
			t.Errorf("the next one after %v", d)
		}
		if _, err := New(Config{Limits: []Limit{{N: 1, Per: time.Second, Oversize: "yes"}}}); err == nil {
			t.Error("oversize: yes is accepted")
		}
	})
}

// A budget of calls or of money per day is a calendar limit: durable, and when
// it is used up the call is refused at once, with the time at which it is not.
func TestSpendBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // noon
		cfg := Config{Name: "llm", State: t.TempDir(), Limits: []Limit{{Name: "money", Unit: "cents", N: 500, Calendar: "day"}}}
		g := newGate(t, cfg)
		spend := func(estimate, actual int64) error {
			p, err := g.Acquire(t.Context(), Call{Costs: map[string]int64{"cents": estimate}})
			if err == nil {
				p.Settle(map[string]int64{"cents": actual})
				p.Release()
			}
			return err
		}
		for range 4 {
			if err := spend(100, 110); err != nil {
				t.Fatal(err)
			}
		}
		err := spend(100, 100) // 440 of 500 are spent
		var r *Rejected
		if !errors.As(err, &r) || !errors.Is(err, ErrBudget) || r.Bound != "limit:money" || r.RetryAfter != 12*time.Hour+time.Second {
			t.Fatalf("got %v", err)
		}
		if err := spend(60, 30); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		g = newGate(t, cfg)
		if free := g.Stats().Limits[0].Free; free != 30 {
			t.Errorf("after a restart %d are free, want 30", free)
		}
		time.Sleep(12*time.Hour + time.Second)
		if err := spend(100, 100); err != nil {
			t.Errorf("the next day: %v", err)
		}
		_ = g.Close()
	})
}
