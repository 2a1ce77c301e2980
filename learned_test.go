package mete

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/quota"
)

// A provider that shows its quota refuses no more than a couple of calls,
// whatever was configured.
func TestQuotaHeaders(t *testing.T) {
	for _, limits := range [][]Limit{nil, {Per(100, time.Minute)}, {Per(50, time.Second)}} {
		for _, p := range []*provider{
			{kind: "fixed", n: 80, per: time.Minute, phase: 17 * time.Second},
			{kind: "fixed", n: 80, per: time.Minute, window: true},
			{kind: "fixed", n: 400, per: 10 * time.Second, window: true},
			{kind: "sliding", n: 80, per: time.Minute, window: true},
		} {
			p.header, p.hint, p.rtt = true, true, 50*time.Millisecond
			t.Run(p.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGate(t, Config{Limits: limits, Concurrency: 10, Retry: Retry{Attempts: 10}})
					p.work(t, g, 20, 5*time.Minute)
					least := 0.95 * float64(5*p.n) * float64(time.Minute) / float64(p.per)
					if limits == nil { // as many as are in flight may have been counted in another order
						least -= 5 * 10
					}
					if limits != nil && limits[0].Per == time.Minute && p.per < time.Minute {
						least = 0.95 * 500
					}
					if len(p.refused) > 2 || float64(len(p.accepted)) < least {
						t.Errorf("limits %v: %d refused, %d accepted, want %.0f", limits, len(p.refused), len(p.accepted), least)
					}
				})
			})
		}
	}
}

// Of a quota of which there is plenty few statements are read, near its end all
// are, and another user of the same quota is noticed in time.
func TestQuotasAreReadSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{kind: "fixed", n: 6000, per: time.Minute, header: true, rtt: 10 * time.Millisecond}
		g := newGate(t, Config{})
		p.work(t, g, 2, 20*time.Second)
		if all, unread := len(p.accepted), int(p.unread.Load()); all < 3900 || unread < all*9/10 {
			t.Errorf("%d of %d successes unread", unread, all)
		}
		before := p.unread.Load()
		p.mu.Lock()
		for len(p.accepted) < 5400 { // somebody else
			p.accepted = append(p.accepted, time.Since(p.begun))
		}
		p.mu.Unlock()
		p.work(t, g, 2, 30*time.Second)
		if n := p.unread.Load() - before; n > 25 || len(p.refused) > 1 || len(p.accepted) < 5990 {
			t.Errorf("%d unread, %d refused, %d accepted", n, len(p.refused), len(p.accepted))
		}
	})
}

// respond makes an attempt whose response shows quotas.
func respond(t testing.TB, g *Gate, quotas ...quota.Quota) {
	t.Helper()
	tries := g.Tries(t.Context(), Call{Patient: true})
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	tries.Again(Outcome{Answered: true, Quotas: quotas})
	p.Release()
}

func shows(name string, limit, remaining int64, window, reset time.Duration) quota.Quota {
	return quota.Quota{Name: name, Unit: Requests, Limit: limit, HasLimit: limit >= 0, Remaining: remaining, HasRemaining: remaining >= 0,
		Window: window, Reset: time.Now().Add(reset)}
}

// delay is how long a call has to wait now.
func delay(t testing.TB, g *Gate) time.Duration {
	t.Helper()
	d, err := g.Peek(Call{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each mode does what it says; only a configured limit bounds what follow gives.
func TestLearnModes(t *testing.T) {
	for _, c := range []struct {
		mode          Learn
		waits         bool    // for a reset when nothing is left
		lower, higher float64 // share after a lower and then a higher limit
	}{
		{"", true, 0.5, 0.5}, {LearnCap, true, 0.5, 0.5}, {LearnFollow, true, 0.5, 1}, {LearnObserve, false, 1, 1}, {LearnOff, false, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Limits: []Limit{Per(100, time.Second)}, Learn: c.mode})
			share := func() float64 { return math.Round(1000*g.q.limits[0].share()) / 1000 }
			respond(t, g, shows("x", 50, 40, time.Second, time.Second))
			if got := share(); got != c.lower {
				t.Errorf("%q: share %v, want %v", c.mode, got, c.lower)
			}
			respond(t, g, shows("x", 500, 400, time.Second, time.Second))
			if got := share(); got != c.higher {
				t.Errorf("%q: share %v after a higher limit, want %v", c.mode, got, c.higher)
			}
			time.Sleep(11 * time.Minute)
			respond(t, g, shows("x", 500, 0, time.Second, 20*time.Second))
			if got := share(); got != 1 {
				t.Errorf("%q: share %v ten minutes later", c.mode, got)
			}
			if d := delay(t, g); (d > 19*time.Second) != c.waits {
				t.Errorf("%q: a call waits %v", c.mode, d)
			}
			if n := len(g.Stats().Learned); (n == 1) != (c.mode != LearnOff) {
				t.Errorf("%q: %d quotas in Stats", c.mode, n)
			}
		})
	}
	if _, err := New(Config{Learn: "all"}); err == nil || !strings.Contains(err.Error(), "observe") {
		t.Errorf("learn all: %v", err)
	}
}

// At nothing left calls wait for the reset and say what they wait for; whoever
// cannot wait that long is told at once; a reset that is far away is believed
// for five minutes, and then one call looks.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: time.Minute})
		respond(t, g, shows("core", 5000, 0, 0, 40*time.Second))
		start := time.Now()
		p, err := g.Acquire(t.Context(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "the reset", time.Since(start), 39*time.Second, 40*time.Second)
		if w := p.Waits(); w.Bound != "limit:core" {
			t.Errorf("waits %+v", w)
		}
		p.Release()
		respond(t, g, shows("core", 5000, 0, 0, time.Hour))
		var r *Rejected
		if _, err := g.Acquire(t.Context(), Call{}); !errors.As(err, &r) || r.Reason != WaitTimeout || r.Bound != "limit:core" || r.RetryAfter > 5*time.Minute || r.RetryAfter < 4*time.Minute {
			t.Errorf("an hour: %v", err)
		}
		time.Sleep(5 * time.Minute)
		p, err = g.Acquire(t.Context(), Call{})
		if err != nil || delay(t, g) < time.Minute {
			t.Fatalf("five minutes later: %v, the next one waits %v", err, delay(t, g))
		}
		p.Release()
		respond(t, g) // five minutes later, and silent about it
		if d := delay(t, g); d != 0 {
			t.Errorf("a doubt that nobody confirmed holds for %v", d)
		}
	})
}

// A response that was overtaken does not count twice what was granted since
// (and does not raise what is left).
func TestRemainingOutOfOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(rt, "calls")
		order := rapid.Permutation(make([]int, n)).Draw(rt, "unused")
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(rt, "order")
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{})
			respond(t, g, shows("x", 100, 99, time.Minute, time.Minute))
			end := time.Now().Add(time.Minute)
			tries := make([]*Tries, n)
			permits := make([]*Permit, n)
			for i := range tries {
				time.Sleep(time.Millisecond)
				tries[i] = g.Tries(t.Context(), Call{})
				permits[i], _ = tries[i].Next()
			}
			for _, i := range order {
				time.Sleep(time.Millisecond)
				tries[i].Again(Outcome{Answered: true, Quotas: []quota.Quota{shows("x", 100, int64(98-i), time.Minute, time.Until(end))}})
				permits[i].Release()
				if left := g.Stats().Learned[0].Remaining; left != int64(99-n) {
					rt.Fatalf("%d calls: %d left after the response to call %d", n, left, i)
				}
			}
		})
	})
}

// A quota of which later responses are silent concerns only some calls, so it
// holds nobody back (Discord has one for each channel, GitHub one for search).
func TestQuotaOfSomeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{})
		respond(t, g, shows("search", 30, 1, time.Minute, time.Minute))
		time.Sleep(time.Millisecond)
		respond(t, g, shows("core", 5000, 4000, time.Hour, time.Hour))
		time.Sleep(time.Millisecond)
		respond(t, g, shows("search", 30, 0, time.Minute, time.Minute))
		if d := delay(t, g); d != 0 {
			t.Errorf("a call waits %v for the quota of others", d)
		}
	})
}

// Whatever a provider says, nothing is admitted beyond the configured limit,
// nobody waits for long because of it, and nothing overflows.
func TestHostileQuotas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hostile := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 3), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 999_999_999_999_999}))
		type statement struct {
			q       quota.Quota
			reset   time.Duration
			instant time.Duration
		}
		var said []statement
		for range rapid.IntRange(1, 12).Draw(rt, "statements") {
			said = append(said, statement{
				q: quota.Quota{
					Name: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"), Unit: Requests,
					Limit: hostile.Draw(rt, "limit"), HasLimit: rapid.Bool().Draw(rt, "hasLimit"),
					Remaining: hostile.Draw(rt, "remaining"), HasRemaining: rapid.Bool().Draw(rt, "hasRemaining"),
					Window: time.Duration(hostile.Draw(rt, "window")), Bucket: rapid.Bool().Draw(rt, "bucket"),
				},
				reset:   time.Duration(hostile.Draw(rt, "reset")),
				instant: time.Duration(rapid.Int64Range(0, int64(20*time.Minute)).Draw(rt, "after")),
			})
		}
		mode := rapid.SampledFrom([]Learn{LearnCap, LearnFollow}).Draw(rt, "mode")
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Limits: []Limit{{N: 20, Per: time.Second, Burst: 20}}, Learn: mode})
			for _, s := range said {
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond) // now or never
				tries := g.Tries(ctx, Call{})
				if p, err := tries.Next(); err == nil {
					s.q.Reset = time.Now().Add(s.reset)
					tries.Again(Outcome{Answered: true, Quotas: []quota.Quota{s.q}})
					p.Release()
				}
				cancel()
				if n := take(g); n > 20 {
					rt.Fatalf("%d starts in no time at 20/s", n)
				}
				for i := range g.q.limits[1:] {
					if d := g.q.limits[1+i].meter.Ready(g.now(), 1) - g.now(); d > 5*time.Minute {
						rt.Fatalf("one unit waits %v: %+v", d, s)
					}
				}
				if share := g.q.limits[0].share(); !(share > 0 && share <= 1) {
					rt.Fatalf("share %v: %+v", share, s)
				}
				for _, l := range g.Stats().Learned {
					if l.Remaining < -1 || l.Limit < -1 || l.Reset < 0 || l.Reset > quota.MaxDelay || l.Age < 0 {
						rt.Fatalf("%+v", l)
					}
				}
				time.Sleep(s.instant)
			}
		})
	})
}

// A used-up quota stops the provider for all at once and with its reason, also
// those who would wait for anything else, and is not asked again before its
// time; then one call looks. A choice behind another gate goes on.
func TestExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Retry: Retry{Attempts: 5}})
		spent := &Throttled{Err: errors.New("insufficient_quota"), Terminal: true}
		calls := 0
		fail := func(context.Context) error { calls++; time.Sleep(time.Second); return spent }
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				err := Do(t.Context(), g, Call{Patient: i%2 == 0}, fail)
				var r *Rejected
				if !errors.Is(err, spent) || errors.As(err, &r) && (r.Reason != Exhausted || r.RetryAfter != time.Hour) {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if calls != 1 || g.Stats().Exhausted != "insufficient_quota" || g.Stats().Paused != time.Hour {
			t.Errorf("%d calls, %+v", calls, g.Stats())
		}
		start := time.Now()
		if _, err := g.Acquire(t.Context(), Call{}); !errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), "insufficient_quota") || time.Since(start) != 0 {
			t.Errorf("%v", err)
		}
		v, err := Fallback(t.Context(), 0,
			Choice[int]{Gate: g, Do: func(context.Context) (int, error) { return 1, nil }},
			Choice[int]{Gate: newGate(t, Config{}), Do: func(context.Context) (int, error) { return 2, nil }})
		if v != 2 || err != nil {
			t.Errorf("fallback: %v, %v", v, err)
		}
		time.Sleep(time.Hour)
		p, ok := g.TryAcquire(Call{})
		if !ok {
			t.Fatal("stopped after its time")
		}
		p.Release()
		if err := Do(t.Context(), g, Call{}, fail); !errors.Is(err, spent) || calls != 2 {
			t.Errorf("%d calls, %v", calls, err)
		}
		g.Reopen()
		if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
			t.Errorf("after Reopen: %v", err)
		}
		idle(t, g)
	})
}

// One 429 with Retry-After 2 among fifty calls at once: nobody sends for 2 s,
// then a ramp, and no second 429.
func TestOneThrottleOfFifty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 50, Limits: []Limit{{N: 100, Per: time.Second}}, Retry: Retry{Attempts: 4}})
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				err := Do(t.Context(), g, Call{Patient: true}, func(context.Context) error {
					mu.Lock()
					at = append(at, time.Since(start))
					n := len(at)
					mu.Unlock()
					time.Sleep(500 * time.Millisecond)
					if n == 30 {
						return After(errPushedBack, 2*time.Second)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		told := at[29] + 500*time.Millisecond
		opens := told + 2*time.Second
		if n := between(at, told+1, opens); n != 0 {
			t.Errorf("%d sent during the pause", n)
		}
		if n := between(at, opens, opens+time.Second); n > 30 {
			t.Errorf("%d sent in the first second after it", n)
		}
		if len(at) != 401 {
			t.Errorf("%d attempts for 400 calls and one 429", len(at))
		}
	})
}

// A fixed window of 100 a minute whose 429 names the edge: at most 1 % of the
// calls is refused over three windows, also where more was configured.
func TestRetryAfterAtTheEdge(t *testing.T) {
	for _, n := range []int64{100, 110, 120} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{kind: "fixed", n: 100, per: time.Minute, rtt: 50 * time.Millisecond, hint: true}
			g := newGate(t, Config{Limits: []Limit{Per(n, time.Minute)}, Concurrency: 20, Retry: Retry{Attempts: 10}})
			p.work(t, g, 20, 3*time.Minute)
			if all := len(p.accepted) + len(p.refused); 100*len(p.refused) > all || len(p.accepted) < 290 {
				t.Errorf("%d/m: %d of %d refused", n, len(p.refused), all)
			}
		})
	}
}

// Whoever raised the quota is believed: after Reopen, and when a call that was
// let through in doubt brings back more than was left.
func TestAQuotaThatWasRaised(t *testing.T) {
	for _, reopen := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{})
			reset := time.Now().Add(time.Hour)
			says := func(left int64) { respond(t, g, shows("core", 5000, left, 0, time.Until(reset))) }
			says(0)
			if reopen {
				g.Reopen()
			} else {
				time.Sleep(5 * time.Minute)
			}
			says(4000)
			if d := delay(t, g); d != 0 {
				t.Errorf("reopen %v: a call waits %v though 4000 are left", reopen, d)
			}
			says(3999)
			if l := g.Stats().Learned; len(l) != 1 || l[0].Remaining != 3999 || l[0].Unit != Requests {
				t.Errorf("reopen %v: %+v", reopen, l)
			}
		})
	}
}
