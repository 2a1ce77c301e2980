package adaptive

import "time"

const (
	tolerance     = 0.02 // share of failures that costs nothing
	tolerable     = 0.2  // the most it is raised to when cuts are in vain
	burst         = 3    // failures beyond it that cost nothing either
	deepest       = 0.5  // factor of a cut, at most
	slightest     = 0.95 // factor of a cut, at least
	shortestHold  = time.Second
	longestHold   = time.Minute
	longestTrips  = 320 // mean latencies of a hold, if that is more
	shortestTrips = 20
)

// failure decides when failures lower the limit, and by how much.
//
// Failures at a small steady share say nothing about load. They are paid from
// a budget that successes fill, so that 1 % of errors does not bring the limit
// down, which any "was there a failure" rule does.
type failure struct {
	tolerance float64
	budget    float64
	usual     float64 // share of failures in the last thousand calls
	epoch     uint32  // counts cuts: failures of calls sent before the last are not news
	throttles bool    // a 429 is a failure: the provider counts calls in flight

	recent tally // since the last window
	since  tally // since the last cut
	cut    cut   // the last one
	outage bool
	ceiling
}

// tally counts calls that were sent after the last cut.
type tally struct{ ok, failed int }

func (t tally) calls() int { return t.ok + t.failed }

func (t tally) share() float64 { return float64(t.failed) / float64(max(t.calls(), 1)) }

// cut is a fall of the limit for a share of failures; none if from is 0.
type cut struct{ share, from, to float64 }

func (f *failure) success(t Ticket) {
	f.budget = min(f.most(), f.budget+f.tolerance)
	f.relax(0)
	if t.epoch == f.epoch {
		f.recent.ok++
		f.since.ok++
	}
}

// most is how full the budget gets. Where failures are usual they also come in
// larger clusters.
func (f *failure) most() float64 { return burst + 40*(f.tolerance-tolerance) }

// relax lets a tolerance that was raised go back to twice the usual share, at
// a pace at which that share is known.
func (f *failure) relax(failed float64) {
	f.usual += (failed - f.usual) / 1000
	if f.tolerance > tolerance {
		f.tolerance = max(tolerance, f.tolerance+min(0, 2*f.usual-f.tolerance)/1000)
	}
}

func (f *failure) failure(l *Limiter, t Ticket) {
	if t.epoch != f.epoch {
		return
	}
	f.recent.failed++
	f.since.failed++
	f.relax(1)
	f.budget--
	if l.cfg.Without.Budget {
		f.budget = -1
	}
}

// judgeFailures lowers the limit by the share that failed, and reports whether
// that was needed.
func (l *Limiter) judgeFailures(now time.Duration, s summary) bool {
	f := &l.failure
	if f.trying() && l.limit >= f.top()-0.5 && (s.blocked || s.peak >= l.Limit()) {
		f.bound = true
	}
	if f.outage && f.recent.failed == 0 && f.recent.ok > 0 {
		f.outage = false
	}
	if blamed := l.quota.blamed; blamed > 0 {
		// 429s that a lower rate did not end.
		l.quota.blamed = 0
		f.throttles = true
		l.fall(now, min(blamed, l.limit), 1-blamed/l.limit)
		return true
	}
	if f.budget >= 0 {
		return false
	}
	share := f.recent.share()
	if f.recent.calls() < 8 {
		share = f.since.share()
	}
	if f.vain(l.limit) {
		f.tolerance = max(f.tolerance, min(tolerable, 1.5*f.since.share()))
		f.throttles = false
		if s.blocked || s.peak >= l.Limit() {
			l.limit = min(f.cut.from, 2*l.limit)
		}
		f.cut, f.since, f.ceiling = cut{}, tally{}, ceiling{}
		f.budget = f.most()
		l.reason = Vain
		return true
	}
	l.fall(now, min(l.limit, float64(s.peak))*min(max(1-share, deepest), slightest), share)
	return true
}

// vain reports whether the cut before did next to nothing for the failures.
// Had the limit been their cause, then as many calls as before would have
// succeeded out of fewer.
func (f *failure) vain(limit float64) bool {
	if f.cut.from == 0 || f.since.calls() < 30 || f.since.share() > tolerable {
		return false
	}
	expected := max(0, 1-(1-f.cut.share)*f.cut.from/limit)
	return f.cut.share-f.since.share() < (f.cut.share-expected)/3
}

// fall lowers the limit because a share of calls failed.
func (l *Limiter) fall(now time.Duration, limit, share float64) {
	f, g, from := &l.failure, &l.growth, l.limit
	hold := max(shortestHold, duration(shortestTrips*l.mean))
	switch {
	case share > 0.5:
		// The provider is out. What it could bear before it will again; but
		// not what it was just about to be tried with.
		switch {
		case f.outage:
		case g.starting:
			g.aim = l.limit / 2
		case l.limit < g.aim:
			g.aim = max(l.limit, g.aim/2)
		default:
			g.aim = l.limit
		}
		f.outage = true
	case f.trying() && l.limit > f.level:
		limit = f.level
		if f.step > f.least() {
			limit = f.level + f.step/2
		}
		hold = min(2*f.hold, max(longestHold, duration(longestTrips*l.mean)))
	default:
		hold = max(hold, f.hold)
	}
	limit = max(min(limit, l.limit), l.limit/2, float64(l.cfg.Min))
	if share <= 0.5 {
		g.aim = min(g.aim, limit)
		f.ceiling.set(l, now, limit, hold)
	}
	l.limit, l.reason = limit, Cut
	g.starting, g.run = false, 0
	f.cut = cut{share: share, from: from, to: limit}
	f.recent, f.since = tally{}, tally{}
	f.budget = f.most() / burst
	f.epoch++
}

// least is the first step above a ceiling of the limit.
func (c *ceiling) least() float64 { return max(1, 0.05*c.level) }

// passCeiling tries more than the ceiling, when it is time to.
func (l *Limiter) passCeiling(now time.Duration) {
	c := &l.failure.ceiling
	if c.level == 0 || now < c.until {
		return
	}
	trial := max(shortestHold, duration(shortestTrips*l.mean))
	if c.trying() && !c.bound {
		c.until = now + trial // not tried in earnest
		return
	}
	c.raise(now, c.least(), 0.2*c.level, trial)
}
