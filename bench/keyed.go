package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	xrate "golang.org/x/time/rate"

	"github.com/metehq/mete"
)

// keyed is a limiter for each of many keys. What mete has is a Set: a gate per
// key, with its queue, pause and statistics, which a program of a million hosts
// pays for. The peers' keys hold a count and a time.
func keyed(quick bool) []comparison {
	n := 100_000
	if quick {
		n = 10_000
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("tenant-%07d", i)
	}
	makers := []struct {
		name string
		make func() func(key string) bool
	}{
		{"mete", meteKeys(n)}, {"throttled", throttledKeys}, {"sethvargo/memory", memoryKeys}, {"map+x/time", mapKeys},
	}
	const why = "A key of a Set is a whole gate; there is no limiter in mete that holds only a count and a time for each key."
	bytes := comparison{
		name: fmt.Sprintf("keyed: bytes a key beside the key, %d keys", n), unit: "B",
		target: target{kind: atMost, bound: 64}, rounds: 1, why: why,
	}
	hits := comparison{
		name: fmt.Sprintf("keyed: a hit among %d keys", n), unit: "ns",
		target: target{kind: atMostOf, bound: 1}, why: why,
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
				take(keys[r.IntN(len(keys))])
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

func meteKeys(n int) func() func(string) bool {
	return func() func(string) bool {
		set := value(mete.NewSet(mete.SetConfig{
			MaxKeys: n,
			Gate:    mete.Config{Limits: []mete.Limit{mete.Bucket(plenty, time.Second, plenty)}},
		}))
		return func(key string) bool {
			p, ok := value(set.Gate(key)).TryAcquire(mete.Call{})
			p.Release()
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
