package main

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	xrate "golang.org/x/time/rate"

	"github.com/metehq/mete/rate"
)

// plenty is a rate and a burst that no sample uses up.
const plenty = 1_000_000_000

// limiters are the peers that can be asked without waiting, all with n units
// per period and a burst of n.
func limiters(n int, per time.Duration) map[string]func() bool {
	x := xrate.NewLimiter(xrate.Limit(float64(n)/per.Seconds()), n)
	bursty := ratelimiter.NewBursty[any](uint(n), per)
	// throttled and go-limiter are made for keys; one key is the closest to a
	// plain limiter. Their documented memory stores, throttled's without LRU.
	// At its first tick go-limiter's bucket of v0.7.1 falls to per/n tokens (see
	// availableTokens), so that tick is put off beyond the end of the run.
	gcra := value(throttled.NewGCRARateLimiterCtx(value(memstore.NewCtx(0)),
		throttled.RateQuota{MaxRate: throttled.PerDuration(n, max(per, time.Duration(n))), MaxBurst: n - 1}))
	store := value(memorystore.New(&memorystore.Config{Tokens: uint64(n), Interval: max(per, time.Hour)}))
	ctx := context.Background()
	return map[string]func() bool{
		"x/time":           x.Allow,
		"failsafe bursty":  bursty.TryAcquirePermit,
		"throttled":        func() bool { limited, _, err := gcra.RateLimitCtx(ctx, "", 1); must(err); return !limited },
		"sethvargo/memory": func() bool { _, _, _, ok, err := store.Take(ctx, ""); must(err); return ok },
	}
}

// asks returns a do that calls try n times and expects the same answer of all.
func asks(name string, try func() bool, want bool) func(n int) {
	return func(n int) {
		for range n {
			if try() != want {
				panic("the wrong answer of " + name)
			}
		}
	}
}

func rates() []comparison {
	const ops = 1 << 20
	allowed := comparison{
		name: "rate: Allow, allowed", unit: "ns",
		target: target{kind: atMostOf, bound: 0.8},
		why:    "The reading of the clock, which every limiter pays, is four fifths of it; the rest is one compare-and-swap.",
	}
	ours := value(rate.New(rate.Bucket{N: plenty, Per: time.Second, Burst: plenty}))
	allowed.mete = contender{"mete", alone(ops, func(n int) {
		for range n {
			if !ours.Allow(1) {
				panic("a limiter gave the wrong answer")
			}
		}
	})}
	for name, try := range limiters(plenty, time.Second) {
		allowed.peers = append(allowed.peers, contender{name, alone(ops, asks(name, try, true))})
	}

	denied := comparison{
		name: "rate: Allow, denied, 8 goroutines", unit: "ns",
		target: target{kind: atMostOf, bound: 0.4},
		why:    "A denial reads the clock and a few words and writes nothing; with the processors taken by others nobody contends, and contention is what the peers lose by.",
	}
	none := value(rate.New(rate.Bucket{N: 1, Per: 1000 * time.Hour}))
	none.Allow(1)
	denied.mete = contender{"mete", each(ops, spread(8, func(n int) {
		for range n {
			if none.Allow(1) {
				panic("a limiter gave the wrong answer")
			}
		}
	}))}
	for name, try := range limiters(1, 1000*time.Hour) {
		try()
		denied.peers = append(denied.peers, contender{name, each(ops, spread(8, asks(name, try, false)))})
	}

	ctx := context.Background()
	x := xrate.NewLimiter(plenty, plenty)
	bursty := ratelimiter.NewBursty[any](plenty, time.Second)
	waits := func(wait func() error) func() float64 {
		return alone(ops, func(n int) {
			for range n {
				must(wait())
			}
		})
	}
	wait := comparison{
		name: "rate: Wait with tokens left", unit: "ns",
		mete: contender{"mete", waits(func() error { return ours.Wait(ctx, 1) })},
		peers: []contender{
			{"x/time", waits(func() error { return x.Wait(ctx) })},
			{"failsafe bursty", waits(func() error { return bursty.AcquirePermit(ctx) })},
		},
		target: target{kind: atMostOf, bound: 0.45},
	}
	return []comparison{allowed, denied, wait}
}

// pacing is how much of 10,000 per second one caller gets that does nothing but
// wait, with no burst to make up for late timers.
func pacing(quick bool) comparison {
	const want = 10_000
	length := 3 * time.Second
	if quick {
		length = time.Second / 2
	}
	ctx := context.Background()
	share := func(wait func()) func() float64 {
		return func() float64 {
			wait()
			begun := time.Now()
			n := 0
			for ; time.Since(begun) < length; n++ {
				wait()
			}
			return float64(n) / time.Since(begun).Seconds() / want
		}
	}
	ours := value(rate.New(rate.Bucket{N: want, Per: time.Second, Burst: 1}))
	x := xrate.NewLimiter(want, 1)
	u := uber.New(want, uber.WithoutSlack)
	smooth := ratelimiter.NewSmooth[any](want, time.Second)
	return comparison{
		name: "rate: one caller at 10,000/s, burst 1: share of it", unit: "",
		mete: contender{"mete", share(func() { must(ours.Wait(ctx, 1)) })},
		peers: []contender{
			{"x/time", share(func() { must(x.Wait(ctx)) })},
			{"uber without slack", share(func() { u.Take() })},
			{"failsafe smooth", share(func() { must(smooth.AcquirePermit(ctx)) })},
		},
		target: target{kind: between, bound: 0.999, upper: 1.001},
		rounds: 3,
		why:    "A processor that is taken away for more than 5 ms is lost time: only 5 ms of lateness are made up, so that a window never holds more than was promised.",
	}
}
