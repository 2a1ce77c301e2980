package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	xrate "golang.org/x/time/rate"

	"github.com/metehq/mete/rate"
)

// keyed is a limiter for each of many keys.
func keyed(quick bool) []comparison {
	n := 1_000_000
	if quick {
		n = 100_000
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("tenant-%07d", i)
	}
	makers := []struct {
		name string
		make func() func(key string) bool
	}{
		{"mete", meteKeys(n)}, {"throttled", throttledKeys}, {"sethvargo/memory", memoryKeys}, {"xsync+x/time", syncKeys}, {"map+x/time", mapKeys},
	}
	bytes := comparison{
		name: fmt.Sprintf("keyed: bytes a key beside the key, %d keys", n), unit: "B",
		target: target{kind: atMost, bound: 64}, rounds: 1,
		why: "The table of a part is half to three quarters full.",
	}
	hits := comparison{
		name: fmt.Sprintf("keyed: a hit among %d keys", n), unit: "ns",
		target: target{kind: atMostOf, bound: 1},
		why:    "Most of it is waiting for memory: for the key, its header, and its place.",
	}
	for _, m := range makers {
		size := contender{m.name, func() float64 {
			before := memory()
			take := m.make()
			for _, key := range keys {
				take(key)
			}
			per := (memory() - before) / float64(n)
			take(keys[0])
			return per
		}}
		var take func(key string) bool
		hit := contender{m.name, alone(n, func(ops int) {
			if take == nil {
				take = m.make()
				for _, key := range keys {
					take(key)
				}
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range ops {
				if !take(keys[r.IntN(len(keys))]) {
					panic("the wrong answer of " + m.name)
				}
			}
		})}
		if m.name == "mete" {
			bytes.mete, hits.mete = size, hit
		} else {
			bytes.peers, hits.peers = append(bytes.peers, size), append(hits.peers, hit)
		}
	}
	return []comparison{bytes, hits}
}

// meteKeys is given a limit under which no key is forgotten while it is measured.
func meteKeys(n int) func() func(string) bool {
	return func() func(string) bool {
		k := value(rate.NewKeyed(rate.Bucket{N: 1, Per: time.Hour, Burst: 1000}, n))
		return func(key string) bool {
			ok, _ := k.Allow(key, 1)
			return ok
		}
	}
}

func throttledKeys() func(string) bool {
	gcra := value(throttled.NewGCRARateLimiterCtx(value(memstore.NewCtx(0)),
		throttled.RateQuota{MaxRate: throttled.PerSec(plenty), MaxBurst: plenty - 1}))
	return func(key string) bool {
		limited, _, err := gcra.RateLimitCtx(context.Background(), key, 1)
		must(err)
		return !limited
	}
}

func memoryKeys() func(string) bool {
	store := value(memorystore.New(&memorystore.Config{Tokens: plenty, Interval: time.Hour}))
	return func(key string) bool {
		_, _, _, ok, err := store.Take(context.Background(), key)
		must(err)
		return ok
	}
}

// mapKeys is what most programs have, without the mutex that it needs as soon
// as there are two goroutines.
func mapKeys() func(string) bool {
	limiters := map[string]*xrate.Limiter{}
	return func(key string) bool {
		l := limiters[key]
		if l == nil {
			l = xrate.NewLimiter(plenty, plenty)
			limiters[key] = l
		}
		return l.Allow()
	}
}

// syncKeys is the same for many goroutines.
func syncKeys() func(string) bool {
	limiters := xsync.NewMap[string, *xrate.Limiter]()
	return func(key string) bool {
		l, _ := limiters.LoadOrCompute(key, func() (*xrate.Limiter, bool) {
			return xrate.NewLimiter(plenty, plenty), false
		})
		return l.Allow()
	}
}
