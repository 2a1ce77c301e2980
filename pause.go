package mete

import (
	"math"
	"time"

	"github.com/metehq/mete/retry"
)

// pause closes a provider until a time, lets one probe through afterwards, and
// then opens step by step: a quarter of the rate and of the permits, doubled
// each second.
type pause struct {
	until    time.Duration // closed until then; 0 is not closed
	stopped  time.Duration // refused until then: a quota is used up for long
	why      error         // it said so
	jitter   time.Duration // the part of it that nobody asked for
	probing  bool          // the pause is over, no success since
	probe    uint32        // number of the one call that is out to try; 0 is none
	probes   uint32        // so far
	probed   time.Duration // when it was granted
	rampFrom time.Duration // when the probe succeeded; 0 is no ramp
	started  time.Duration // when the last pause began
	unhinted int           // throttles without a hint in a row
	search   search        // for the rate that the provider really allows
	refusals refusals      // the last starts that it refused
	opened   time.Duration // when the last pause was over; 0 is none
	stretch  float64       // in force at the meters; 0 is not known
	paced    time.Duration // as of when
}

const (
	rampStart = 0.25
	// probeLease is how long a probe may take before another one is let
	// through: one that never ends must not close a provider for good.
	probeLease = time.Minute
)

// closed is the time until which nothing starts; now or before means open.
func (p *pause) closed(now time.Duration) time.Duration {
	if until := max(p.until, p.stopped); until > now {
		return until
	}
	if p.probing && p.probe != 0 {
		return p.probed + probeLease
	}
	return now
}

// ramping reports whether the provider opens step by step.
func (p *pause) ramping(now time.Duration) bool { return p.rampFrom > 0 }

// open is the share of the limits that is in force at now.
func (p *pause) open(now time.Duration) float64 {
	if p.rampFrom == 0 {
		return 1
	}
	steps := (now - p.rampFrom) / time.Second
	if steps > 1 {
		return 1
	}
	return rampStart * float64(int(1)<<steps)
}

// narrow says when a ramp would let weight more permits be in use.
func (p *pause) narrow(now time.Duration, inUse, weight, permits int64) time.Duration {
	if p.rampFrom == 0 || inUse == 0 || permits == math.MaxInt64 {
		return now
	}
	return p.narrowed(now, inUse, weight, permits)
}

func (p *pause) narrowed(now time.Duration, inUse, weight, permits int64) time.Duration {
	share := p.open(now)
	if inUse+weight <= int64(math.Ceil(share*float64(permits))) {
		return now
	}
	return p.nextStep(now)
}

func (p *pause) nextStep(now time.Duration) time.Duration {
	steps := (now - p.rampFrom) / time.Second
	return p.rampFrom + (steps+1)*time.Second
}

// granted makes the first attempt after a pause the probe.
func (p *pause) granted(f *flight) {
	if p.probing && (p.probe == 0 || f.granted >= p.probed+probeLease) {
		p.probes++
		p.probe, p.probed, f.probe = p.probes, f.granted, p.probes
	}
}

// triedBy reports whether f is the probe. It is known by its number: a pause
// that referred to a flight would keep a permit that is lost from being found.
func (p *pause) triedBy(f *flight) bool { return f.probe != 0 && f.probe == p.probe }

// pace stretches the paced limits while the provider opens again and after
// throttles inside the configured limit.
func (q *queue) pace(now time.Duration) {
	if q.auto != nil {
		q.adapt(now)
	}
	if p := &q.pause; p.stretch != 1 || p.rampFrom != 0 || p.search.on {
		q.repace(now)
	}
}

func (q *queue) repace(now time.Duration) {
	p := &q.pause
	period := q.period()
	// A step that nobody was there to see took place when it was due.
	for {
		at := now
		if p.rampFrom > 0 {
			at = min(at, p.nextStep(max(p.paced, p.rampFrom)))
		}
		if p.search.on && !p.probing {
			at = min(at, max(p.search.due(period), p.paced+1))
		}
		q.paceAt(at)
		if p.paced = at; at == now {
			return
		}
	}
}

func (q *queue) paceAt(now time.Duration) {
	p := &q.pause
	if p.rampFrom > 0 && p.open(now) == 1 {
		p.rampFrom = 0
	}
	if p.search.on && !p.probing {
		p.search.step(now, q.period())
	}
	stretch := 1 / (p.open(now) * p.search.current())
	if stretch == p.stretch {
		return
	}
	p.stretch = stretch
	for i := range q.limits {
		q.limits[i].meter.Stretch(now, stretch/q.limits[i].share())
	}
}

// throttled closes the provider because an attempt was pushed back. A delay of
// 0 is no hint. It reports the end of the pause.
func (q *queue) throttled(now time.Duration, f *flight, delay time.Duration, hinted bool) time.Duration {
	p := &q.pause
	fresh := p.fresh(f.granted)
	var counted float64
	if l := q.pacedLimit(); l != nil {
		if fresh {
			counted = q.accepted(f, l)
		}
		if c := f.chargeOf(l); c != nil {
			p.refusals.add(c.At())
		}
	}
	if !hinted || delay == 0 {
		if !fresh {
			return p.until
		}
		hinted = false
		p.unhinted++
		delay = retry.Unhinted(p.unhinted)
	}
	jitter := p.jitter
	if fresh {
		jitter = retry.Jitter(delay, hinted)
		p.started = max(now, 1)
		// A probe that is refused says that the pause was too short, and
		// nothing of the rate.
		if len(q.limits) > 0 && !p.probing {
			p.search.refused(now, counted)
		}
	}
	q.closeUntil(now, now+delay, jitter)
	return p.until
}

// stopFor is how long a provider whose quota is used up for long is left alone
// if it does not ask for longer. A short delay beside such an answer misleads:
// it is that of another quota.
const stopFor = time.Hour

// stop refuses all calls for long, whatever they would wait for: a quota is
// used up, and no repetition helps.
func (q *queue) stop(now time.Duration, o *Outcome) {
	p := &q.pause
	p.stopped, p.why = max(p.stopped, now+max(o.RetryAfter, stopFor)), o.Err
	p.started = max(now, 1)
	p.probing, p.probe, p.rampFrom = true, 0, 0
	q.pace(now)
	q.sweep(func(*waiter) (Reason, time.Duration) { return Exhausted, p.stopped - now })
}

// Reopen ends a pause and a stop by an exhausted quota before their time, as
// after the quota was raised, and forgets what responses said of the quotas'
// limits and remainders. One call goes first to see. It does not block.
func (g *Gate) Reopen() {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	p := &g.q.pause
	p.until, p.jitter, p.stopped, p.why = min(p.until, now), 0, 0, nil
	g.q.forget()
	g.q.learned.renew()
	g.q.lower(now)
	g.stepAndUnlock(now)
}

// fresh reports whether an attempt was granted after the last pause began.
// Those that were under way then tell nothing new, save that the provider may
// name a later time.
func (p *pause) fresh(granted time.Duration) bool {
	return p.started == 0 || granted > p.started
}

// closeUntil closes the provider until a time that was asked for and jitter
// beyond it; of two pauses the later end counts. Whoever cannot wait that long
// is refused at once.
func (q *queue) closeUntil(now, asked, jitter time.Duration) {
	p := &q.pause
	until := asked + jitter
	if until <= max(p.until, now) {
		return
	}
	p.until, p.jitter = until, jitter
	p.probing, p.probe, p.rampFrom = true, 0, 0
	q.pace(now)
	q.sweep(func(w *waiter) (Reason, time.Duration) {
		switch {
		case w.deadline > 0 && w.deadline <= p.until:
			return Deadline, p.until - now
		case w.expire > 0 && w.expire < p.until, w.maxPause > 0 && asked > now+w.maxPause:
			return Paused, p.until - now
		}
		return "", 0
	})
}

// answered tells that the provider answered an attempt without pushing back.
func (q *queue) answered(now time.Duration, f *flight) {
	if q.pause.triedBy(f) {
		q.pause.probing, q.pause.probe = false, 0
		open, shut := q.pause.started-q.pause.opened, now-q.pause.started
		q.pause.search.reopened(now, shut <= q.period()/2 && open+shut >= q.period())
		q.pause.rampFrom, q.pause.opened = max(now, 1), max(now, 1)
	}
	if q.pause.fresh(f.granted) {
		q.pause.unhinted = 0
	}
	q.pace(now)
}

// ended gives the probe back if it ends without an answer.
func (p *pause) ended(f *flight) {
	if p.triedBy(f) {
		p.probe = 0
	}
}
