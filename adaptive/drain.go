package adaptive

import (
	"math"
	"time"
)

const (
	grid    = 10 * time.Second // drains fall on multiples of it
	halving = 4                // times that one drain halves the limit, after the first
)

// drain measures the baseline with less load: BBR's ProbeRTT. Clients that
// share a provider see each other's queues, so they must drain together; the
// wall clock brings that about without a word between them.
type drain struct {
	wall   time.Duration // to be added to give the wall clock
	due    time.Duration // the next one
	period time.Duration
	active bool
	began  time.Duration
	limit  float64 // while it is active
	halved int
	best   summary // the last one that was clearly lower than those before
	done   bool    // there has been one
	doubt  bool    // the guard held in the last window
	early  bool    // this one, or the last, was begun by doubt, not by the clock
}

// schedule finds the next multiple of the period. Periods are powers of two
// apart, so that clients of unlike latency meet as well.
func (d *drain) schedule(now time.Duration, least time.Duration) {
	period := grid
	for period < least && period < math.MaxInt64/4 {
		period *= 2
	}
	if period == d.period && now < d.due {
		return
	}
	d.period = period
	wall := now + d.wall
	d.due = wall - wall%period + period - d.wall
}

// rare reports whether drains are minutes apart, as for calls of seconds.
func (d *drain) rare() bool { return d.period > 4*grid }

// trip is the mean latency without the queue, as far as that is known.
func (l *Limiter) trip() float64 {
	queue := max(0, l.last.median-l.baseline.value)
	return max(l.mean-queue, l.mean/4)
}

// settling is how long a drain lets the calls that came before it leave: until
// nearly all would have, had there been no queue.
func (l *Limiter) settling() float64 {
	return min(max(l.last.p95-(l.mean-l.trip()), l.trip()), 8*l.trip())
}

// startDrain begins a drain that is due, unless something else is going on
// that it would disturb or that would disturb it.
func (l *Limiter) startDrain(now time.Duration) {
	d := &l.drain
	if l.cfg.Algorithm != Knee || l.cfg.Without.Drains || d.active || l.mean == 0 {
		return
	}
	was := d.due
	// At most a tenth of the time, with the wait for calls to leave. But the
	// first drain is worth more than that: whoever came last to a provider has
	// never seen it without a queue.
	least := 10 * duration(l.settling()+5.5*l.trip())
	if !d.done {
		least /= 3
	}
	d.schedule(now, least)
	due := was > 0 && was <= now && now-was <= duration(2*l.mean)
	doubt := d.doubt && !d.early && !d.rare()
	if !due && !doubt {
		return
	}
	if l.limit < 4 || l.growing() || !l.baseline.known || l.last.n == 0 ||
		l.growth.moved > 2*setPoint(l.limit) || l.failure.ceiling.trying() || l.quota.ceiling.trying() ||
		l.permits(l.limit/2) > int(0.75*l.limit) {
		return
	}
	*d = drain{wall: d.wall, due: d.due, period: d.period, done: d.done, early: !due, active: true, began: now, limit: l.limit / 2}
	settle := duration(l.settling())
	if !due {
		settle = 0 // throughput is what it will be as soon as fewer are in flight
	}
	l.window.close(settle)
	l.window.pass(now, l.inFlight, l.Limit())
}

// stuck reports whether a drain had better be given up: the provider fails, or
// the calls before it do not end.
func (d *drain) stuck(l *Limiter, now time.Duration) bool {
	if l.failure.budget < 0 {
		return true
	}
	return !l.window.open && l.window.ready == never && now-d.began > duration(8*(1+float64(d.halved))*2*l.mean)
}

// endDrain goes back to the limit before.
func (l *Limiter) endDrain() {
	l.drain.active = false
	l.window.close(duration(l.mean))
}

// judgeDrain learns from what a drain measured, or halves the limit again if
// that tells of a queue that is still there.
func (l *Limiter) judgeDrain(now time.Duration, s summary) {
	d, b := &l.drain, &l.baseline
	if s.n < 5 && d.halved == 0 {
		l.endDrain()
		return
	}
	if d.early {
		// If half the calls get as much done, the rest did but queue: the provider
		// can do less than it could. The baseline is not measured, since others
		// have not drained with this one.
		if s.throughput > 0.75*l.last.throughput {
			l.throughput = throughput{}
		}
		l.endDrain()
		return
	}
	fell := d.halved == 0 || s.n >= 5 && s.median < d.best.median-s.se
	if fell {
		d.best = s
	}
	d.done = true
	off, target := math.Abs(s.median-b.value), setPoint(l.limit)
	bound := l.last.blocked || l.last.peak >= int(l.limit)
	if fell && (bound || !d.rare()) && off > 2*s.se && s.throughput*off > target/2 &&
		d.halved < halving && d.limit >= 2 && l.permits(d.limit/2) < l.Limit() {
		d.halved++
		d.limit /= 2
		l.window.close(duration(l.settling()))
		l.window.pass(now, l.inFlight, l.Limit())
		return
	}
	// A later halving that is no lower may have met the load of clients that
	// are done with their drain.
	s = d.best
	off = math.Abs(s.median - b.value)
	share := 1.0
	if off <= 3*s.se {
		noise := l.last.throughput * s.se / (target / 2)
		share = 1 / (1 + noise*noise)
	}
	risen := off > 3*s.se && s.median > b.value
	b.toward(s.median, s.se, share)
	if risen {
		// Calls take longer for reasons outside, so there must be more of them.
		l.growth.aim = max(l.growth.aim, l.needed(l.last))
	}
	l.reason = Drain
	l.endDrain()
}
