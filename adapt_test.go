package mete

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
)

// station works on c calls at a time for about d each; the rest queue in it.
type station struct {
	slots  chan struct{}
	d      time.Duration
	rng    *rand.Rand
	mu     sync.Mutex
	starts []time.Time
}

func newStation(c int, d time.Duration) *station {
	return &station{slots: make(chan struct{}, c), d: d, rng: rand.New(rand.NewPCG(1, 2))}
}

func (s *station) serve(context.Context) error {
	s.mu.Lock()
	s.starts = append(s.starts, time.Now())
	took := time.Duration(float64(s.d) * (0.9 + 0.2*s.rng.Float64()))
	s.mu.Unlock()
	s.slots <- struct{}{}
	time.Sleep(took)
	<-s.slots
	return nil
}

// load keeps n callers busy until the end of the test.
func load(t *testing.T, g *Gate, n int, fn func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = Do(ctx, g, Call{Patient: true}, fn)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// The limit comes to where the provider is busy and hardly queues, and follows
// when its capacity is halved.
func TestAdaptiveFindsTheKnee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1}})
		s := newStation(32, 50*time.Millisecond)
		load(t, g, 200, s.serve)
		time.Sleep(20 * time.Second)
		before := g.Stats()
		time.Sleep(20 * time.Second)
		now := g.Stats()
		rate := float64(now.Attempts-before.Attempts) / 20
		latency := (now.Held - before.Held) / time.Duration(now.Ended-before.Ended)
		t.Logf("%.0f/s of 640, latency %v, limit %d, %+v", rate, latency, now.Concurrency, *now.Adaptive)
		if rate < 0.93*640 || latency > 90*time.Millisecond {
			t.Errorf("%.0f/s of 640 at %v", rate, latency)
		}
		if now.Bound != "semaphore" || now.Adaptive.InFlight > now.InUse {
			t.Errorf("bound %q, in flight %d of %d", now.Bound, now.Adaptive.InFlight, now.InUse)
		}
		if got := Diagnose(before, now); !strings.HasPrefix(got, "The adaptive concurrency is at ") || !strings.HasSuffix(got, "More permits would only wait there.") {
			t.Error(got)
		}
		for range 16 { // the provider loses half of its capacity
			go func() { s.slots <- struct{}{} }()
		}
		time.Sleep(5 * time.Second)
		before = g.Stats()
		time.Sleep(5 * time.Second)
		now = g.Stats()
		latency = (now.Held - before.Held) / time.Duration(now.Ended-before.Ended)
		rate = float64(now.Attempts-before.Attempts) / 5
		t.Logf("after the loss: %.0f/s of 320, latency %v, limit %d", rate, latency, now.Concurrency)
		if rate < 0.9*320 || latency > 130*time.Millisecond {
			t.Errorf("%.0f/s of 320 at %v five seconds after half of the provider was lost", rate, latency)
		}
		for range 16 {
			<-s.slots
		}
	})
}

// A run that a limit paces never moves the number of permits
// (Netflix/concurrency-limits#65: the limit grows although it is not used).
func TestAdaptiveStandsStillUnderALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1}, Limits: []Limit{Per(50, time.Second)}})
		s := newStation(100, 100*time.Millisecond)
		load(t, g, 50, s.serve)
		for range 60 {
			time.Sleep(time.Second)
			if l := g.Stats().Adaptive.Limit; l != 20 {
				t.Fatalf("the limit moved to %v", l)
			}
		}
		if got := g.Stats().Bound; got != "limit:50/s" {
			t.Errorf("bound %q", got)
		}
	})
}

// A call that fails at once keeps its permit for as long as calls take, so that
// a provider that is down is not hammered; all permits come back.
func TestAdaptiveKeepsThePermitOfAnEarlyFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1, Initial: 4, Max: 4}})
		for range 40 {
			if err := Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		failed := errors.New("down")
		start := time.Now()
		if err := Do(t.Context(), g, Call{}, func(context.Context) error { return failed }); !errors.Is(err, failed) || time.Since(start) != 0 {
			t.Fatalf("%v after %v: the caller must not wait for the permit", err, time.Since(start))
		}
		if s := g.Stats(); s.InUse != 1 {
			t.Errorf("%d permits in use right after the failure, want the one that is kept back", s.InUse)
		}
		time.Sleep(900 * time.Millisecond)
		if s := g.Stats(); s.InUse != 1 {
			t.Errorf("the permit came back early: %d in use", s.InUse)
		}
		time.Sleep(200 * time.Millisecond)
		if s := g.Stats(); s.InUse != 0 {
			t.Errorf("%d permits never came back", s.InUse)
		}
		// One that waits is woken by the time, nothing else happening.
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { _ = Do(t.Context(), g, Call{}, func(context.Context) error { return failed }) })
		}
		wg.Wait()
		time.Sleep(31 * time.Second)
		if s := g.Stats(); s.InUse != 0 || s.Waiting != 0 || s.Adaptive.InFlight != 0 {
			t.Errorf("%d in use, %d waiting, %d on the wire at rest", s.InUse, s.Waiting, s.Adaptive.InFlight)
		}
	})
}

// What the caller ended, was refused for its own fault or was never sent
// teaches nothing (sony/gobreaker#105).
func TestAdaptiveIgnoresWhatIsNotTheProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1, Max: 64}})
		s := newStation(8, 100*time.Millisecond)
		load(t, g, 8, s.serve)
		time.Sleep(30 * time.Second)
		limit := g.Stats().Adaptive.Limit
		for range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_ = Do(ctx, g, Call{}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			cancel()
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { return Permanent(errors.New("no such row")) })
			if p, err := g.Acquire(t.Context(), Call{Wire: true}); err == nil {
				p.Cancel()
			}
		}
		if now := g.Stats().Adaptive; now.Limit < limit-1 || now.Tolerance == 0 {
			t.Errorf("the limit went from %v to %v", limit, now.Limit)
		}
	})
}

// An update keeps what was learned while the configuration is the same, goes on
// from the number of permits otherwise, and loses no permit.
func TestAdaptiveUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Adaptive: &adaptive.Config{Seed: 1}}
		g := newGate(t, cfg)
		s := newStation(64, 50*time.Millisecond)
		load(t, g, 300, s.serve)
		time.Sleep(15 * time.Second)
		learned := g.Stats().Concurrency
		if learned < 50 {
			t.Fatalf("%d permits after 15 s", learned)
		}
		update := func(c Config) Stats {
			t.Helper()
			if err := g.Update(c); err != nil {
				t.Fatal(err)
			}
			return g.Stats()
		}
		same := *cfg.Adaptive
		if now := update(Config{Adaptive: &same, MaxQueue: 1000}); now.Adaptive.Baseline == 0 {
			t.Error("an equal configuration forgot what was learned")
		}
		if now := update(Config{Adaptive: &adaptive.Config{Seed: 1, Max: 30}}); now.Concurrency != 30 {
			t.Errorf("%d permits with a maximum of 30", now.Concurrency)
		}
		time.Sleep(time.Second)
		if now := update(Config{Adaptive: &adaptive.Config{Seed: 1, Max: 500}}); now.Concurrency > 30 {
			t.Errorf("a new maximum made %d permits of 30", now.Concurrency)
		}
		if now := update(Config{Concurrency: 7}); now.Concurrency != 7 || now.Adaptive != nil {
			t.Errorf("%+v", now)
		}
		time.Sleep(time.Second)
		if now := g.Stats(); now.InUse != 7 {
			t.Errorf("%d of 7 permits in use", now.InUse)
		}
	})
	if _, err := New(Config{Adaptive: &adaptive.Config{Min: 5, Max: 2}}); err == nil {
		t.Error("min above max was taken")
	}
}

// 429s teach a rate, and calls wait for it under its own name.
func TestAdaptivePacesAtTheRateOf429s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1}})
		var mu sync.Mutex
		tokens, last, refused, calls := 10.0, time.Now(), 0, 0
		load(t, g, 100, func(ctx context.Context) error {
			mu.Lock()
			tokens = min(10, tokens+100*time.Since(last).Seconds())
			last = time.Now()
			calls++
			ok := tokens >= 1
			if ok {
				tokens--
			} else {
				refused++
			}
			mu.Unlock()
			if !ok {
				return After(errors.New("429"), time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		time.Sleep(30 * time.Second)
		mu.Lock()
		calls, refused = 0, 0
		mu.Unlock()
		time.Sleep(30 * time.Second)
		s := g.Stats()
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d calls, %d refused in 30 s of 100/s; %v", calls, refused, s.Blocked)
		if refused*50 > calls || calls-refused < 2400 || s.Blocked["limit:auto"] == 0 {
			t.Errorf("%d calls, %d refused in 30 s of 100/s; %v", calls, refused, s.Blocked)
		}
	})
}

// A call that is canceled costs nothing, of the rate that 429s taught neither:
// the next one starts when it would have started.
func TestCanceledCallCostsNoTurnOfTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1}})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		limit := newGate(t, Config{Limits: []Limit{Bucket(100, time.Second, 10)}})
		for range 50 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = Do(ctx, g, Call{Patient: true}, func(context.Context) error {
						p, ok := limit.TryAcquire(Call{})
						if p.Release(); !ok {
							return After(errors.New("429"), time.Millisecond)
						}
						time.Sleep(50 * time.Millisecond)
						return nil
					})
				}
			})
		}
		for begun := time.Now(); g.Stats().Adaptive.Rate == 0 && time.Since(begun) < time.Minute; {
			time.Sleep(time.Second)
		}
		cancel()
		wg.Wait()
		for i := range 5 {
			begun := time.Now()
			p, err := g.Acquire(t.Context(), Call{})
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begun); i > 0 && d > 0 {
				t.Errorf("call %d waited %v for one that was canceled", i, d)
			}
			p.Cancel()
		}
	})
}

// A heavy call in a lane with a cap is not too large because the number of
// permits happens to be small just now, and the error of a refusal says how
// many there are.
func TestAdaptiveHeavyCallInACappedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Adaptive: &adaptive.Config{Seed: 1, Initial: 2, Max: 100}, MaxQueue: 1,
			Lanes: []Lane{{Name: "a"}, {Name: "b", Cap: 0.5}}})
		p, err := g.Acquire(t.Context(), Call{Lane: "b", Weight: 30})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Acquire(t.Context(), Call{Lane: "b", Weight: 51}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("more than the cap of the largest number: %v", err)
		}
		var r *Rejected
		if _, err := g.Acquire(t.Context(), Call{Weight: 101}); !errors.As(err, &r) || r.Concurrency != 2 {
			t.Errorf("%+v", r)
		}
		p.Release()
		idle(t, g)
	})
}
