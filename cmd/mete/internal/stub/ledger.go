package stub

import (
	"math/rand/v2"
	"time"
)

// ledger is everything that a request changes, under one lock that is held
// twice for about a microsecond: at its arrival and at its end.
type ledger struct {
	cfg      Config
	counts   counts
	quota    quota
	tokens   tokens
	faults   faults
	random   *rand.Rand
	inFlight int
	serving  int // in flight and accepted
	keep     int64
}

// outcome is what is to become of one request.
type outcome struct {
	generation int64
	status     int
	accepted   bool
	reset      bool
	soft       bool
	latency    time.Duration
	wait       time.Duration // of a rejected one: until it would be accepted
	standings  []standing
	left       int64 // when it was answered with 429
}

func (l *ledger) init(cfg Config, base time.Time) {
	l.cfg = cfg
	l.random = rand.New(rand.NewPCG(cfg.Seed, 0x6d657465))
	l.quota = quota{window: cfg.Window, burst: cfg.Burst, wall: base.UnixNano()}
	l.tokens.limits = cfg.Tokens
	l.clear()
	l.faults = faults{latency: cfg.Latency, knee: cfg.Knee}
	l.setLimits(cfg.Limits, 0)
}

func (l *ledger) clear() {
	c := &l.counts
	l.tokens.clear()
	*c = counts{
		windows:    c.windows,
		answered:   make(map[uint64]bool),
		keys:       make(map[uint64]bool),
		once:       make(map[uint64]struct{}),
		generation: c.generation + 1,
		peak:       l.inFlight,
	}
	for i := range c.windows {
		c.windows[i].most, c.windows[i].over = 0, 0
	}
}

func (l *ledger) setLimits(limits []Limit, t int64) {
	l.quota.set(limits, t)
	l.counts.setWindows(limits, l.cfg.Measure)
	longest := time.Minute
	for _, w := range l.counts.windows {
		longest = max(longest, w.per)
	}
	for _, k := range l.tokens.limits {
		longest = max(longest, k.Per)
	}
	l.keep = int64(longest + time.Minute)
}

// arrive records an arrival at t and decides. Standings are appended to buf
// when the answer's headers need them.
func (l *ledger) arrive(t int64, c *conn, buf []standing) outcome {
	if t >= l.faults.next {
		l.expire(t)
	}
	n := &l.counts
	n.arrive(t)
	if n.requests%chunk == 0 {
		n.arrivals.forget(t - l.keep)
		l.quota.forget(t - l.keep)
		l.tokens.forget(t - l.keep)
	}
	if c != nil && c.counted != n.generation {
		c.counted = n.generation
		n.connections++
	}
	l.inFlight++
	n.peak = max(n.peak, l.inFlight)

	o := outcome{generation: n.generation, standings: buf}
	switch {
	case l.cfg.Concurrency > 0 && l.serving >= l.cfg.Concurrency:
		o.status, o.wait = l.cfg.ConcurrencyStatus, time.Second
		if o.status == 0 {
			o.status = 429
		}
	default:
		if o.wait, o.accepted = l.quota.take(t); !o.accepted {
			o.status = 429
		}
	}
	if h := l.cfg.Headers; h != "" && h != NoHeaders {
		for i := range l.quota.limits {
			o.standings = append(o.standings, l.quota.standing(i, t))
		}
	}
	if !o.accepted {
		n.rejected++
		return o
	}
	n.accepted++
	l.serving++
	o.latency = l.faults.latency.Min
	if spread := l.faults.latency.Max - l.faults.latency.Min; spread > 0 {
		o.latency += time.Duration(l.random.Int64N(int64(spread) + 1))
	}
	if k := l.faults.knee; k > 0 && l.serving > k {
		o.latency = time.Duration(float64(o.latency) * float64(l.serving) / float64(k))
	}
	if l.faults.outage {
		o.status, o.latency = 503, 0
		return o
	}
	l.draw(&o)
	return o
}

// spend charges an accepted request that arrived at t with its tokens, once its
// body has told them. One that there are none left for is refused after all:
// what it took of the other limits stays taken.
func (l *ledger) spend(o *outcome, t, cost int64) {
	wait, ok := l.tokens.take(t, cost)
	if ok {
		return
	}
	o.accepted, o.status, o.wait, o.reset, o.soft = false, 429, wait, false, false
	l.serving--
	if o.generation == l.counts.generation {
		l.counts.accepted--
		l.counts.rejected++
	}
}

// draw picks at most one fault.
func (l *ledger) draw(o *outcome) {
	o.status = 200
	if len(l.cfg.Fail) == 0 && l.cfg.Reset == 0 && l.cfg.SoftErrors == 0 {
		return
	}
	u := l.random.Float64()
	if u < l.cfg.Reset {
		o.reset = true
		return
	}
	u -= l.cfg.Reset
	for _, f := range l.cfg.Fail {
		if u < f.Share {
			o.status = f.Status
			return
		}
		u -= f.Share
	}
	o.soft = u < l.cfg.SoftErrors
}

// ending is how a request came to its end.
type ending int

const (
	answered ending = iota
	cutOff
	abandoned
)

// leave records the end of a request, just before the last byte of its answer:
// once the client has that it may send the next.
func (l *ledger) leave(o *outcome, e ending, request, key uint64) {
	l.inFlight--
	if o.accepted {
		l.serving--
	}
	n := &l.counts
	if o.generation != n.generation {
		return
	}
	switch {
	case e == cutOff:
		n.resets++
	case e == abandoned:
		n.abandoned++
	default:
		n.statuses[o.status]++
		if o.status == 429 {
			n.refused(o.left)
		}
		if o.soft && o.status == 200 {
			n.soft++
		} else if o.status/100 == 2 {
			n.answer(request, key)
		}
	}
}

// first tells whether a /once path is asked for the first time.
func (l *ledger) first(request uint64) bool {
	if _, known := l.counts.once[request]; known {
		return false
	}
	l.counts.once[request] = struct{}{}
	return true
}
