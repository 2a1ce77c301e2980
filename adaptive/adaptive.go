// Package adaptive finds how many calls to keep in flight at a provider whose
// capacity nobody knows, from how calls fare.
//
// [Knee] works towards a short queue at the provider. How many calls queue
// there is estimated by Little's law: throughput × how far the median latency
// lies above a baseline, the median without a queue. Once per window the limit
// L moves half the way to where about √L calls queue. Around that law:
//
//   - The baseline is measured anew by drains: half the limit for some round
//     trips, at multiples of 10 s of the wall clock, so that all processes that
//     call a provider drain together and none measures the others' queues.
//   - Latency does not lower the limit while throughput is down too: then the
//     latency is not of our making, or the provider has lost capacity. A drain
//     out of turn tells.
//   - Failures are paid from a budget of 2 % and a few more. When it is used up
//     the limit falls by the share that failed, once per round trip.
//   - The permit of a failed call comes back no sooner than if the call had
//     succeeded, so that a provider that refuses at once is not hammered.
//   - A 429 teaches a rate, not a limit: see [Limiter.Rate].
//   - The limit does not grow unless it binds, and queues are not charged to it
//     unless it is used.
//
// The parts are known: set points of a few queued calls from TCP Vegas and
// FAST, drains that competing flows share from BBR and Copa, decreases at most
// once per round trip from TCP, growth only when the limit binds from RFC 7661.
// A set point that grows more slowly than L makes clients that share a provider
// come to equal limits; one in proportion to L would leave any split as it is.
//
// A [Limiter] neither locks nor waits nor reads a clock. Its owner (a gate)
// holds a lock around every call and passes the time since an instant of its
// own choosing, which must not run backwards. Every call costs O(1), except
// that one per window sorts at most 512 latencies.
package adaptive

import (
	"math"
	"math/rand/v2"
	"time"
)

// Outcome is how a call ended, as far as the limit is concerned.
type Outcome uint8

// The outcomes.
const (
	// Ignored says nothing about the provider: the caller gave up, the request
	// was at fault (4xx), nothing was sent. It changes no limit.
	Ignored Outcome = iota
	// Success gives the only latencies that are learnt from.
	Success
	// Throttled is a refusal for a quota: 429, or 503 with Retry-After.
	Throttled
	// Failed is a provider that could not: 502, 503, 504, a timeout, a
	// connection that broke.
	Failed
)

// Ticket belongs to a call in flight.
type Ticket struct {
	start time.Duration
	epoch uint32 // which cut of the limit came before it
}

// Limiter is one limit. Make it with New.
type Limiter struct {
	cfg    Config
	random *rand.Rand

	limit    float64 // as it is; permits are whole
	settled  float64 // the limit for which the window last settled
	inFlight int
	mean     float64 // latency of a success in seconds, smoothed; 0 before the first
	window   window
	reason   Reason
	last     summary   // of the last window that was judged
	queue    float64   // estimated at its end
	early    []float64 // latencies, until they are enough for a baseline

	growth     growth
	baseline   baseline
	throughput throughput
	drain      drain
	failure    failure
	quota      quota
}

// New returns a limiter of a configuration in which Check found nothing wrong.
// wall is what must be added to the times passed to it to give the time since
// 1970, so that drains of several processes fall together.
func New(cfg Config, wall time.Duration) *Limiter {
	cfg = cfg.filled()
	l := &Limiter{
		cfg:    cfg,
		random: rand.New(rand.NewPCG(cfg.Seed, 0x6d657465)),
		limit:  float64(cfg.Initial),
		reason: Start,
	}
	l.settled = l.limit
	l.growth = growth{starting: true, aim: math.Inf(1)}
	l.failure = failure{tolerance: tolerance, budget: burst}
	l.drain.wall = wall
	if cfg.Without.Alignment {
		l.drain.wall += time.Duration(l.random.Int64N(int64(grid)))
	}
	l.window.reopen(0, 0)
	return l
}

// Limit is how many permits there are.
func (l *Limiter) Limit() int {
	if l.drain.active {
		return l.permits(l.drain.limit)
	}
	return l.permits(l.limit)
}

func (l *Limiter) permits(limit float64) int {
	return min(max(int(limit), l.cfg.Min), l.cfg.Max)
}

// Rate is how many calls per second the provider was seen to accept while it
// refused others with 429; starts should be spread out at it. 0 is no rate.
func (l *Limiter) Rate() float64 { return l.quota.rate() }

// Blocked tells that a caller found no free permit. A caller that waits for a
// rate or a pause is not meant.
func (l *Limiter) Blocked(now time.Duration) {
	l.pass(now)
	l.window.blocked = true
}

// Start tells that a call goes to the wire, and how many permits are out with
// its own, those that are kept back after a failure included. Each call so
// begun needs one Done.
func (l *Limiter) Start(now time.Duration, inFlight int) Ticket {
	l.pass(now)
	l.inFlight = inFlight
	l.window.peak = max(l.window.peak, inFlight)
	l.quota.start(now)
	return Ticket{start: now, epoch: l.failure.epoch}
}

// Done tells how a call ended, and returns when its permit is to be free
// again: now, or later for a call that failed sooner than calls succeed. The
// latency is that of the whole call, from the wire to the end of the body,
// since for so long the permit was held.
func (l *Limiter) Done(now time.Duration, t Ticket, o Outcome) (free time.Duration) {
	l.pass(now)
	l.inFlight = max(l.inFlight-1, 0)
	free = now
	switch o {
	case Success:
		latency := seconds(now - t.start)
		l.window.add(latency, l.random)
		l.failure.success(t)
	case Throttled, Failed:
		if !l.cfg.Without.Quarantine {
			free = max(now, t.start+min(duration(l.mean), longest))
		}
		if o == Throttled && l.throttle(now, t) {
			break
		}
		if l.window.open && t.epoch == l.failure.epoch {
			l.window.calls++
		}
		if o == Failed && l.quota.in(t) {
			l.quota.lost++
		}
		l.failure.failure(l, t)
	}
	l.pass(now)
	return free
}

// Step lets time pass and returns when it wants to be called again; 0 is
// never. Other calls let time pass too, so it is needed only while a drain or
// a hold may end between them.
func (l *Limiter) Step(now time.Duration) (next time.Duration) {
	l.pass(now)
	next = min(l.windowDue(), l.quota.due(), l.failure.ceiling.due())
	if d := &l.drain; !d.active && d.due > 0 {
		next = min(next, d.due)
	}
	if next == never {
		return 0
	}
	return next
}

// pass does what is due.
func (l *Limiter) pass(now time.Duration) {
	l.window.pass(now, l.inFlight, l.Limit())
	if l.drain.active && l.drain.stuck(l, now) {
		l.endDrain()
	}
	if l.window.open && now >= l.windowDue() {
		l.close(now)
	}
	if l.cfg.Algorithm == AIMD {
		return
	}
	l.startDrain(now)
	l.passQuota(now)
	l.passCeiling(now)
}

// windowDue is when the window has lasted long enough, or is worth a look.
func (l *Limiter) windowDue() time.Duration {
	w := &l.window
	if !w.open {
		return w.ready
	}
	r := l.mean
	if r == 0 && w.n > 0 {
		r = w.sum / float64(w.n)
	}
	trip := max(shortest, duration(r))
	last := max(trip, min(longest, duration(8*r)))
	if r == 0 {
		last = longest
	}
	if l.drain.active {
		if w.calls >= enough {
			trips := 4.0
			if l.drain.early {
				trips = 3
			}
			return w.start + duration(trips*l.trip())
		}
		return w.start + duration(8*l.trip())
	}
	want := enough
	if l.growing() {
		want = min(enough, l.Limit())
	}
	if w.calls >= want {
		return max(w.start+trip, w.look)
	}
	return w.start + last
}
