package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// Provider is what the calls meet, as it is now; a Change may alter it.
type Provider struct {
	Servers int // first in first out behind them; 0 is contention instead
	Room    int // callers beyond the servers; more are answered 503 at once
	Network time.Duration
	Service func(r *rand.Rand, now time.Duration) time.Duration

	// Contention: all calls are served at once and slow each other down by the
	// universal scalability law, 1 + Sigma(n-1) + Kappa n(n-1).
	Sigma, Kappa float64

	Errors float64 // share answered 503 after full service
	Outage outage

	Quota      float64       // calls per second, 0 is none
	Burst      float64       // of the quota's token bucket
	Window     time.Duration // instead of a bucket: fixed windows of Quota*Window, and a Retry-After
	Concurrent int           // calls at once, 0 is any; more are answered 429
}

type outage int

const (
	working   outage = iota
	blackHole        // no answer at all
	refusing         // connections refused
)

const (
	throttleTime = time.Millisecond     // how long a provider takes to say 429
	refuseTime   = 2 * time.Millisecond // and a connection to be refused
)

// exponential is a service time with this mean.
func exponential(mean time.Duration) func(*rand.Rand, time.Duration) time.Duration {
	return func(r *rand.Rand, _ time.Duration) time.Duration {
		return time.Duration(r.ExpFloat64() * float64(mean))
	}
}

// lognormal is a service time with this mean and shape, as of language models.
func lognormal(mean func(now time.Duration) time.Duration, shape float64) func(*rand.Rand, time.Duration) time.Duration {
	return func(r *rand.Rand, now time.Duration) time.Duration {
		return time.Duration(math.Exp(shape*r.NormFloat64()-shape*shape/2) * float64(mean(now)))
	}
}

// quota is what was consumed of the provider's own limit of rate.
type quota struct {
	tokens float64
	at     time.Duration
	window int64
	used   float64
	begun  bool
}

// take reports whether a call is within the quota, and if not, when the next
// window begins, where there are windows.
func (q *quota) take(p *Provider, now time.Duration) (ok bool, retryAt time.Duration) {
	switch {
	case p.Quota == 0:
		return true, 0
	case p.Window > 0:
		if w := int64(now / p.Window); w != q.window || !q.begun {
			q.window, q.used, q.begun = w, 0, true
		}
		if q.used < p.Quota*p.Window.Seconds() {
			q.used++
			return true, 0
		}
		return false, time.Duration(q.window+1) * p.Window
	default:
		if !q.begun {
			q.tokens, q.at, q.begun = p.Burst, now, true
		}
		q.tokens = min(p.Burst, q.tokens+(now-q.at).Seconds()*p.Quota)
		q.at = now
		if q.tokens < 1 {
			return false, 0
		}
		q.tokens--
		return true, 0
	}
}

// reached is a call's arrival at the provider.
func (w *world) reached(n int32) {
	p := &w.provider
	if p.Concurrent > 0 && w.station.load() >= p.Concurrent {
		w.answer(n, throttled, throttleTime+p.Network/2)
		return
	}
	if ok, retryAt := w.quota.take(p, w.now); !ok {
		if retryAt > 0 {
			// A little jitter, as the gate adds to the end of a pause.
			retryAt += time.Duration(w.luck.Float64() * float64(maxJitter))
			w.calls.all[n].retryAt = retryAt
		}
		w.answer(n, throttled, throttleTime+p.Network/2)
		return
	}
	if !w.station.enter(w, n) {
		w.answer(n, failed, w.provider.Network/2)
	}
}

// maxJitter is added to the end of a pause.
const maxJitter = 10 * time.Millisecond

// answer sends a reply on its way, which takes so long.
func (w *world) answer(n int32, o outcome, in time.Duration) {
	w.calls.all[n].outcome = o
	w.schedule(w.now+in, event{kind: reply, call: n})
}
