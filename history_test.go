package mete

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/quota"
	"pgregory.net/rapid"
)

// Random histories of whole calls, with everything in force that learns: an
// adaptive concurrency that keeps permits back, quotas in responses, pauses, a
// breaker, permits kept in the back-off, attempts that were never sent, replays,
// panics. Every call ends, and at rest everything has come back.
func TestRandomCalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		callers := rapid.IntRange(1, 12).Draw(rt, "callers")
		var failed string
		synctest.Test(t, func(t *testing.T) { failed = calls(t, seed, callers) })
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}

// calls lets callers make calls at a gate that is changed meanwhile, and
// reports what is wrong at the end.
func calls(t *testing.T, seed uint64, callers int) (failed string) {
	choice := rand.New(rand.NewPCG(seed, 0))
	config := func(choice *rand.Rand) Config {
		maybe := func() bool { return choice.IntN(2) == 0 }
		cfg := Config{Name: "random", Concurrency: 1 + choice.IntN(4), MaxWait: 20 * time.Second, Timeout: time.Duration(choice.IntN(3)) * time.Second,
			Retry: Retry{Attempts: 4, Delay: 200 * time.Millisecond, KeepPermit: maybe()},
			Learn: []Learn{LearnCap, LearnFollow, LearnObserve, LearnOff}[choice.IntN(4)]}
		if maybe() {
			cfg.Adaptive = &adaptive.Config{Seed: 1 + seed, Min: 1, Initial: 1 + choice.IntN(4), Max: 4}
		}
		if maybe() {
			cfg.Limits = []Limit{{Name: "window", N: int64(2 + choice.IntN(4)), Per: time.Second, Burst: 2}}
		}
		if maybe() {
			cfg.Limits = append(cfg.Limits, Limit{Name: "tokens", Unit: "tokens", N: 20, Per: time.Second, Burst: 20, Bucket: true})
		}
		if maybe() {
			cfg.Breaker = breaker.Config{Failures: 0.5, Calls: 3, Open: 2 * time.Second, Lease: 5 * time.Second}
		}
		return cfg
	}
	g, err := New(config(choice))
	if err != nil {
		return err.Error()
	}
	var wg sync.WaitGroup
	for range callers {
		own := rand.New(rand.NewPCG(choice.Uint64(), 0))
		wg.Go(func() {
			for range 10 {
				time.Sleep(time.Duration(own.IntN(1000)) * time.Millisecond)
				oneCall(t, g, own)
			}
		})
	}
	for range 20 {
		time.Sleep(time.Duration(choice.IntN(1500)) * time.Millisecond)
		switch choice.IntN(6) {
		case 0:
			err = g.Update(config(choice))
		case 1:
			g.Pause(time.Duration(choice.IntN(3000)) * time.Millisecond)
		case 2:
			g.Reopen()
		}
		if s := g.Stats(); err != nil || s.InUse < 0 || s.Misuse > 0 {
			return "meanwhile: " + errors.Join(err, errors.New("permits")).Error()
		}
	}
	wg.Wait()
	time.Sleep(2 * time.Hour) // longer than any pause, quota or permit kept back
	s := g.Stats()
	switch {
	case s.InUse != 0 || s.Waiting != 0 || g.timer != nil:
		return "permits, waiters or a timer are left"
	case s.Breaker == breaker.Open:
		return "the breaker never lets a probe through"
	}
	for _, l := range s.Limits {
		if l.Free != l.N {
			return "a charge of " + l.Bound + " never came back"
		}
	}
	for _, l := range g.q.limits {
		if l.learned && l.meter.Ready(g.now(), 1) > g.now() {
			return "a learned quota holds back for ever"
		}
	}
	p, ok := g.TryAcquire(Call{})
	if !ok {
		return "nothing starts at rest"
	}
	p.Release()
	return ""
}

// oneCall makes a call that ends in any way, in Do or in Tries.
func oneCall(t *testing.T, g *Gate, choice *rand.Rand) {
	maybe := func() bool { return choice.IntN(2) == 0 }
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+choice.IntN(60))*time.Second)
	defer cancel()
	call := Call{Patient: maybe(), Weight: choice.IntN(3), Costs: map[string]int64{"tokens": int64(choice.IntN(15))}}
	work := func() { time.Sleep(time.Duration(choice.IntN(400)) * time.Millisecond) }
	if maybe() {
		defer func() { _ = recover() }()
		_ = Do(ctx, g, call, func(ctx context.Context) error {
			work()
			switch choice.IntN(6) {
			case 0:
				return errAgain
			case 1:
				return After(errAgain, time.Duration(choice.IntN(2000))*time.Millisecond)
			case 2:
				panic("in the call")
			case 3:
				<-time.After(time.Duration(choice.IntN(2000)) * time.Millisecond)
				return ctx.Err()
			}
			return nil
		})
		return
	}
	call.Wire = true
	tries := g.Tries(ctx, call)
	for {
		p, err := tries.Next()
		if err != nil {
			return
		}
		sent := maybe()
		if sent {
			work()
			p.Sent()
			if choice.IntN(4) == 0 && p.Replay(tries.Context()) == nil {
				p.Sent()
			}
		}
		work()
		o := Outcome{Answered: sent, Quotas: []quota.Quota{shows("x", 10, int64(choice.IntN(5)), 5*time.Second, time.Duration(choice.IntN(9000))*time.Millisecond)}}
		switch {
		case !sent:
			o = Outcome{Err: errAgain, Repeat: maybe(), Free: true}
		case choice.IntN(4) == 0:
			o = Outcome{Err: errAgain, Repeat: true, Throttled: true, RetryAfter: time.Second, Hinted: maybe(), Quotas: o.Quotas}
		case choice.IntN(4) == 0:
			o = Outcome{Err: errAgain, Repeat: true}
		}
		if tries.Again(o) {
			continue
		}
		if maybe() {
			p.Settle(map[string]int64{"tokens": int64(choice.IntN(20))})
		}
		work()
		p.Release()
		return
	}
}
