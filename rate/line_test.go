package rate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/rate"
)

// Waits that were given up cost nothing (golang/go#56924, golang/go#69419):
// with reservations the next caller would have waited for 10 s.
func TestCancelledWaitsCostNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second})
		take(t, l, 1)
		for range 10 {
			w := wait(l, 1)
			w.cancel()
			w.refused(t, context.Canceled)
		}
		wait(l, 1).granted(t, time.Second)
	})
}

// Who waits behind one that gives up moves up at once, and the bucket stands
// as if that one had never asked (golang/go#56924,
// thrasher-corp/gocryptotrader#2363).
func TestCancelMovesTheLineUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 10, Per: time.Second, Burst: 20})
		take(t, l, 15)
		time.Sleep(100 * ms)
		big := wait(l, 10)
		time.Sleep(100 * ms)
		small := wait(l, 2)
		if s := l.Stats(); s.Waiting != 2 || s.Queued != 12 {
			t.Fatalf("%+v", s)
		}
		big.cancel()
		small.granted(t, 0)
		big.refused(t, context.Canceled)
		free(t, l, 5)
	})
}

// The one behind is planned anew after the head gives up: neither late nor
// with the head's time.
func TestCancelRearmsTheTimer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second, Burst: 10})
		take(t, l, 10)
		big := wait(l, 10)
		next := wait(l, 1)
		time.Sleep(500 * ms)
		big.cancel()
		next.granted(t, time.Second)
	})
}

// A new rate reaches those in line at once (golang/go#23575,
// afreidah/s3-orchestrator#84), and a lower burst clamps the level.
func TestSetReachesThoseInLine(t *testing.T) {
	for name, limits := range map[string][2]rate.Limit{
		"bucket": {rate.Bucket{N: 1, Per: time.Minute}, rate.Bucket{N: 10, Per: time.Second}},
		"window": {rate.Window{N: 1, Per: time.Minute}, rate.Window{N: 10, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := must(t, limits[0])
				take(t, l, 1)
				w := wait(l, 1)
				time.Sleep(time.Second)
				if err := l.Set(limits[1]); err != nil {
					t.Fatal(err)
				}
				<-w.done
				if w.err != nil || w.after > 1150*ms {
					t.Fatalf("%v after %v", w.err, w.after)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 100})
		take(t, l, 20)
		l.Set(rate.Bucket{N: 1, Per: time.Hour, Burst: 5})
		free(t, l, 5)
		l.Set(rate.Bucket{N: 1, Per: time.Hour, Burst: 100})
		free(t, l, 5) // a change never creates capacity
	})
}

// Those who ask for more than the new limit, or for anything of a limit of 0,
// learn it at once; the others stay, in their order.
func TestSetRefusesTheImpossible(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second, Burst: 10})
		take(t, l, 10)
		big, small := wait(l, 10), wait(l, 1)
		l.Set(rate.Bucket{N: 1, Per: time.Second, Burst: 5})
		big.refused(t, rate.ErrTooLarge)
		synctest.Wait()
		l.Set(rate.Bucket{N: 0, Per: time.Second, Burst: 5})
		small.refused(t, rate.ErrNever)
		if err := l.Set(rate.Window{N: 1, Per: time.Second}); !errors.Is(err, rate.ErrInvalid) {
			t.Fatalf("another model: %v", err)
		}
	})
}

// A wait that would pass the deadline is refused at once and says when to come
// back (golang/go#54541, golang/time#15, grafana/dskit#301,
// kubernetes/kubernetes#137694); the line counts, too.
func TestDeadlineIsForeseen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second})
		take(t, l, 1)
		first, second := wait(l, 1), wait(l, 1)
		for _, tc := range []struct {
			timeout time.Duration
			want    error
		}{{2999 * ms, rate.ErrDeadline}, {3000 * ms, rate.ErrDeadline}, {3001 * ms, nil}} {
			ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
			start := time.Now()
			err := l.Wait(ctx, 1)
			if !errors.Is(err, tc.want) {
				t.Fatalf("deadline in %v: %v", tc.timeout, err)
			}
			if refusal, ok := errors.AsType[*rate.Refusal](err); ok {
				if time.Since(start) != 0 || refusal.RetryAfter != 3*time.Second || refusal.Waiting != 2 {
					t.Fatalf("after %v: %+v", time.Since(start), refusal)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Fatal("the context is still alive")
				}
			}
			cancel()
		}
		first.granted(t, time.Second)
		second.granted(t, 2*time.Second)
	})
}

// A context that is done never takes, even if there is something to take.
func TestDoneContextTakesNothing(t *testing.T) {
	l := must(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 3})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g, err := l.Take(ctx, 1); !errors.Is(err, context.Canceled) || g != nil {
		t.Fatalf("%v, %v", g, err)
	}
	free(t, l, 3)
}

// countingContext counts how often the limiter looks at it: once before it
// waits and once whenever it wakes.
type countingContext struct {
	context.Context
	looks *atomic.Int64
}

func (c countingContext) Err() error { c.looks.Add(1); return c.Context.Err() }

// Ten thousand callers at once are served in their order, exactly at the
// rate, and each of them is woken once (mjpieters/aiolimiter#73).
func TestManyWaitersInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const callers = 10_000
		l := must(t, rate.Bucket{N: 100, Per: time.Second})
		start := time.Now()
		var looks atomic.Int64
		var mu sync.Mutex
		var order []int
		var times []time.Duration
		for i := range callers {
			go func() {
				if err := l.Wait(countingContext{t.Context(), &looks}, 1); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, times = append(order, i), append(times, time.Since(start))
			}()
			synctest.Wait()
		}
		time.Sleep(callers * 10 * ms)
		synctest.Wait()
		if len(order) != callers {
			t.Fatalf("%d of %d", len(order), callers)
		}
		for i := range order {
			if order[i] != i || times[i] != time.Duration(i)*10*ms {
				t.Fatalf("grant %d went to caller %d at %v", i, order[i], times[i])
			}
		}
		if n := looks.Load(); n > 2*callers {
			t.Fatalf("the callers woke %d times", n-callers)
		}
	})
}

// Nobody passes those in line, and nothing is lost when callers of all sizes
// give up at random: as long as anybody waits, all that the bucket may grant
// is granted (x/time/rate: half of it).
func TestChurnLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			const burst, n = 5, 100
			l := must(t, rate.Bucket{N: n, Per: time.Second, Burst: burst})
			start := time.Now()
			var granted atomic.Int64
			var last atomic.Int64
			var wg sync.WaitGroup
			for range 500 {
				size := rnd.Int64N(burst) + 1
				ctx, cancel := context.WithCancel(t.Context())
				wg.Go(func() {
					defer cancel()
					if l.Wait(ctx, size) == nil {
						granted.Add(size)
						last.Store(int64(time.Since(start)))
					}
				})
				if rnd.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rnd.Int64N(int64(20*time.Second))), cancel)
				}
				if rnd.IntN(10) == 0 {
					time.Sleep(time.Duration(rnd.Int64N(int64(50 * ms))))
				}
			}
			// The last one stays, and so takes all that has flowed in.
			wg.Go(func() {
				if l.Wait(t.Context(), burst) == nil {
					granted.Add(burst)
					last.Store(int64(time.Since(start)))
				}
			})
			wg.Wait()
			ideal := burst + n*time.Duration(last.Load()).Seconds()
			if got := float64(granted.Load()); got > ideal+1e-6 || got < ideal-1e-6 {
				t.Fatalf("seed %d: granted %v of %v in %v", seed, got, ideal, time.Duration(last.Load()))
			}
			if s := l.Stats(); s.Waiting != 0 || s.Queued != 0 {
				t.Fatalf("%+v", s)
			}
		})
	}
}

// A grant that comes together with the end of the context goes back, whoever
// wins, and the next in line gets it.
func TestGrantRacesCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second})
		take(t, l, 1)
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(peek(t, l, 1), cancel) // at the instant of the grant
			err := make(chan error)
			go func() { err <- l.Wait(ctx, 1) }()
			synctest.Wait()
			behind := wait(l, 1)
			e := <-err
			<-behind.done
			if want := map[bool]time.Duration{true: 2 * time.Second, false: time.Second}[e == nil]; behind.after != want {
				t.Fatalf("first: %v; the one behind waited %v", e, behind.after)
			}
			cancel()
		}
	})
}

// Allow does not pass those in line, and is refused without a look at them.
func TestAllowDoesNotPassTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Second, Burst: 10})
		take(t, l, 5)
		big := wait(l, 10)
		for range 2 {
			if l.Allow(1) {
				t.Fatal("passed the one at the head")
			}
		}
		if l.Stats().Waiting != 1 {
			t.Fatal("passed the one at the head")
		}
		if d := peek(t, l, 1); d != 6*time.Second {
			t.Fatalf("behind the line: %v", d)
		}
		big.cancel()
		<-big.done
		if !l.Allow(5) || l.Allow(1) {
			t.Fatal("nobody waits: 5 are free")
		}
	})
}

// A caller that blocks costs two allocations, alone or in a crowd.
func TestBlockedCallerAllocations(t *testing.T) {
	l := must(t, rate.Bucket{N: 1000, Per: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.Wait(ctx, 1)
	var before, after runtime.MemStats
	const rounds = 200
	for l.Allow(1) { // nothing to catch up
	}
	runtime.ReadMemStats(&before)
	blocked := 0
	for range rounds {
		if d, _ := l.Peek(1); d > 0 {
			blocked++
		}
		if err := l.Wait(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 2*uint64(blocked)+20 {
		t.Errorf("%d allocations for %d waits", n, blocked)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 400*uint64(blocked)+8192 {
		t.Errorf("%d bytes for %d waits", n, blocked)
	}
}

// What is admitted at once costs no allocation, a grant included.
func TestAdmittedWithoutAllocation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, limit := range models {
		l := must(t, limit)
		time.Sleep(time.Millisecond)
		n := testing.AllocsPerRun(1000, func() {
			l.Allow(1)
			if l.Wait(ctx, 1) != nil {
				t.Error("refused")
			}
			if g, err := l.Take(ctx, 2); err == nil {
				g.Settle(1)
			}
		})
		if n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
