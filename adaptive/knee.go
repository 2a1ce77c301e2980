package adaptive

import (
	"math"
	"slices"
	"time"
)

const (
	gain  = 0.5  // share of the way to the set point per window
	guard = 0.85 // of the best throughput; less of it is not of our making
)

// setPoint is how many calls should queue at the provider at a limit.
func setPoint(limit float64) float64 {
	return max(1, math.Sqrt(limit)+0.05*limit)
}

// growth is how the limit has been growing.
type growth struct {
	starting bool    // no queue has been seen yet
	aim      float64 // up to here the limit doubles
	run      int     // windows in a row with next to no queue, while the limit bound
	moved    float64 // by how much the last window changed the limit
	before   summary // the window before, while starting
	was      float64 // its limit
}

// growing reports whether the limit is on its way up, when short windows are
// worth more than exact ones.
func (l *Limiter) growing() bool {
	g := &l.growth
	return g.starting || l.limit < g.aim && !math.IsInf(g.aim, 1) || g.run >= 2
}

// close judges the window, or finds that it had better go on.
func (l *Limiter) close(now time.Duration) {
	w := &l.window
	s := w.summary(now)
	first := l.mean == 0
	if l.drain.active {
		l.judgeDrain(now, s)
		return
	}
	if l.vague(now, s) {
		w.look = now + max(shortest, duration(l.mean))
		return
	}
	l.observe(s)
	l.drain.doubt = false
	before := l.limit
	switch {
	case l.cfg.Algorithm == AIMD:
		l.judgeAIMD(s)
	case l.judgeFailures(now, s):
	case !first && s.n > 0:
		// The calls of the very first window that are done are its short ones.
		l.judgeLatency(now, s)
	}
	l.set(l.limit)
	l.growth.moved = math.Abs(l.limit - before)
	l.last = s
	l.failure.recent = tally{}
	if math.Abs(l.limit-l.settled) >= 1 || int(l.limit) != int(l.settled) {
		l.settled = l.limit
		w.close(duration(l.mean))
	} else {
		w.reopen(now, l.inFlight)
	}
}

// observe learns the mean latency: upwards at once, so that windows stretch.
func (l *Limiter) observe(s summary) {
	switch {
	case s.n == 0:
	case l.mean == 0:
		l.mean = s.mean
	default:
		smoothed := l.mean + 0.3*(s.mean-l.mean)
		if s.n >= 8 {
			smoothed = max(s.mean, smoothed)
		}
		l.mean = smoothed
	}
}

// set keeps the limit within its bounds.
func (l *Limiter) set(limit float64) {
	l.limit = min(max(limit, float64(l.cfg.Min)), float64(l.cfg.Max))
}

// spread is the standard error of a window's queue in seconds: of its median
// and of the baseline.
func (l *Limiter) spread(s summary) float64 {
	return math.Sqrt(s.se*s.se + l.baseline.variance)
}

// vague reports whether a window is worth going on with, because its queue is
// not known well enough to act on.
func (l *Limiter) vague(now time.Duration, s summary) bool {
	if l.cfg.Algorithm != Knee || !l.baseline.known || s.n == 0 || l.failure.budget < 0 {
		return false
	}
	if now-l.window.start >= max(duration(l.mean), min(longest, duration(8*l.mean))) {
		return false
	}
	if l.growing() {
		// By Little's law, the calls in flight cannot be half of them unless
		// most have not been heard of yet.
		return s.blocked && s.throughput*s.mean < float64(s.peak)/2
	}
	target := setPoint(l.limit)
	off := math.Abs(s.throughput*(s.median-l.baseline.value) - target)
	return s.throughput*s.se > 0.35*target && off < 2*s.throughput*l.spread(s)
}

// judgeLatency moves the limit to where the queue is as long as it should be.
func (l *Limiter) judgeLatency(now time.Duration, s summary) {
	g, b := &l.growth, &l.baseline
	bound := (s.blocked || s.peak >= l.Limit()) && !s.throttled
	idle := float64(max(s.peak, s.before)) < l.limit/2
	l.queue = 0
	if l.cfg.Algorithm == Failures {
		l.judgeNoQueue(s, bound)
		return
	}
	l.throughput.add(now, s, l.limit, l.mean)
	if !b.known {
		l.early = append(l.early, l.window.sample...)
		if len(l.early) < enough {
			l.judgeNoQueue(s, bound)
			return
		}
		slices.Sort(l.early)
		b.first(median(l.early))
		l.early = nil
	}
	q, target := s.throughput*(s.median-b.value), setPoint(l.limit)
	l.queue = q
	queued := q-target > 2*s.throughput*l.spread(s)

	switch rose := g.rose(s, l.limit); {
	case g.starting && rose && s.median < b.value+2*l.spread(s):
		b.join(s)
	case idle:
		b.idle(s)
	default:
		b.fall(s)
	}
	g.before, g.was = s, l.limit

	switch {
	case q < target:
		l.grow(q, target, bound)
	case idle:
		g.run = 0
	case g.starting && !queued:
		l.grow(q, target, bound)
	default:
		l.shrink(s, q, target)
	}
}

// judgeNoQueue grows without looking at latency.
func (l *Limiter) judgeNoQueue(s summary, bound bool) {
	l.growth.before, l.growth.was = s, l.limit
	l.grow(0, setPoint(l.limit), bound)
}

// rose reports whether throughput rose nearly as much as the limit.
func (g *growth) rose(s summary, limit float64) bool {
	if g.was == 0 || g.before.throughput == 0 || limit <= g.was {
		return false
	}
	return s.throughput/g.before.throughput-1 >= 0.7*(limit/g.was-1)
}

// grow raises the limit if it binds and nothing speaks against it.
func (l *Limiter) grow(q, target float64, bound bool) {
	g := &l.growth
	if !bound || l.quota.counting || l.failure.budget < 0 {
		g.run = 0
		return
	}
	limit := l.limit + max(0, gain*(target-q))
	switch {
	case g.starting:
		limit = 2 * l.limit
	case q >= target/2:
		g.run = 0
	case l.limit < g.aim:
		limit = max(limit, min(2*l.limit, g.aim))
	default:
		if g.run++; g.run >= 2 {
			limit = max(limit, l.limit*(1+math.Exp2(float64(min(g.run, 5)-5))))
		}
	}
	limit = min(limit, 2*l.limit, max(l.limit, l.failure.ceiling.top()))
	if limit > l.limit {
		l.limit, l.reason = limit, Growth
	}
}

// shrink lowers the limit for a queue that is too long.
func (l *Limiter) shrink(s summary, q, target float64) {
	g := &l.growth
	g.starting, g.run = false, 0
	t := &l.throughput
	if !l.cfg.Without.Guard && t.down(s, l.limit) {
		l.reason, l.drain.doubt = Guard, q > 2*target && t.lost()
		return
	}
	limit := l.limit - min(gain*(q-target), l.limit/2)
	if !l.cfg.Without.Guard {
		limit = max(limit, l.needed(s))
	}
	if !s.blocked && s.peak < l.Limit() {
		// It does not bind, so it falls only to where it does; and if drains
		// are so rare that latency may have changed since, not even there.
		share := 1.0
		if l.drain.rare() {
			share = 1.5
		}
		limit = max(limit, share*float64(max(s.peak, s.before)))
	}
	if limit < l.limit {
		l.limit, l.reason = limit, Queue
	}
	g.aim = min(g.aim, l.limit)
}

// needed is how many calls keep nearly the best throughput without any queue.
func (l *Limiter) needed(s summary) float64 {
	return guard * l.throughput.greatest().rate * (s.mean - (s.median - l.baseline.value))
}
