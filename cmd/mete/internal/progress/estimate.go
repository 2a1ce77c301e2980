package progress

import (
	"math"
	"time"
)

// unknown marks an estimate or a percentage that cannot be given.
const unknown = -1

// view is a Snapshot made safe to show, with what was derived from it.
type view struct {
	Snapshot
	permille int64         // of rows done, rounded down; unknown without a total
	eta      time.Duration // until the last row; unknown without data
	average  float64       // rows per second of this run so far
}

// estimator turns the snapshots of one run into views. It remembers what must
// not go backwards and the speed of late.
//
// The speed is an exponentially weighted mean over time, kept as two sums that
// decay together (rows, seconds), so that it is unbiased from the first second
// on. Time spent in a pause is left out: it is known and added to the estimate
// in full, and counting it twice would make the end look ever farther away.
type estimator struct {
	seen     bool
	at       time.Time
	done     int64 // most rows seen done
	counted  int64 // rows done by this run, most seen
	permille int64
	paused   bool
	rows     float64
	seconds  float64
	active   float64 // seconds outside of pauses, not decayed
}

const (
	memory    = 30 * time.Second // how far back the speed looks, at least
	fewest    = 20               // and how many rows, at least
	soonest   = time.Second      // no estimate from less than this
	horizon   = 10 * 365 * 24 * time.Hour
	allOfThem = 1000
)

// observe takes the next snapshot, made at now.
func (e *estimator) observe(now time.Time, s Snapshot) view {
	s = sane(s)
	e.learn(now, s)

	s.Done = max(s.Done, e.done)
	if s.Total >= 0 {
		s.Done = min(s.Done, s.Total)
	}
	e.done = s.Done

	v := view{Snapshot: s, permille: unknown, eta: unknown}
	if s.Total >= 0 {
		p := int64(allOfThem)
		if s.Done < s.Total {
			p = min(int64(float64(s.Done)/float64(s.Total)*allOfThem), allOfThem-1)
		}
		e.permille = max(e.permille, p)
		v.permille = e.permille
		v.eta = e.eta(s)
	}
	if sec := s.Elapsed.Seconds(); sec > 0 {
		v.average = float64(e.counted) / sec
	}
	return v
}

func (e *estimator) learn(now time.Time, s Snapshot) {
	counted := max(s.Done-s.Resumed, e.counted)
	dt := now.Sub(e.at).Seconds()
	switch {
	case !e.seen:
		// Rows that were done before the first look have taken the time that
		// has passed so far.
		dt = s.Elapsed.Seconds()
	case dt <= 0:
		return
	case e.paused && counted == e.counted:
		dt = 0
	}
	e.active += dt
	keep := 1.0
	if e.active > 0 {
		tau := memory.Seconds()
		if counted > 0 {
			tau = max(tau, fewest*e.active/float64(counted))
		}
		keep = math.Exp(-dt / tau)
	}
	e.rows = e.rows*keep + float64(counted-e.counted)
	e.seconds = e.seconds*keep + dt
	e.seen, e.at, e.counted = true, now, counted
	e.paused = s.PausedFor > 0
}

// eta is the time to the last row: what the quota needs for the rest or what
// the rest takes at the speed of late, whichever is longer, plus a known pause.
func (e *estimator) eta(s Snapshot) time.Duration {
	left := float64(s.Total - s.Done)
	if left == 0 {
		return 0
	}
	if e.rows <= 0 || e.active < soonest.Seconds() {
		return unknown
	}
	sec := left * e.seconds / e.rows
	switch {
	case s.RemainingCost > 0 && s.CostPerSecond > 0:
		sec = max(sec, s.RemainingCost/s.CostPerSecond)
	case s.LimitPerSecond > 0:
		sec = max(sec, left/s.LimitPerSecond)
	}
	sec += s.PausedFor.Seconds()
	if !(sec <= horizon.Seconds()) { // also NaN
		return unknown
	}
	return time.Duration(sec * float64(time.Second))
}

// sane returns s without values that cannot be.
func sane(s Snapshot) Snapshot {
	for _, f := range []*float64{&s.Rate, &s.LimitPerSecond, &s.RemainingCost, &s.CostPerSecond, &s.BoundShare} {
		if !(*f >= 0) || math.IsInf(*f, 0) {
			*f = 0
		}
	}
	s.BoundShare = min(s.BoundShare, 1)
	for _, n := range []*int64{&s.Done, &s.Resumed, &s.OK, &s.Failed, &s.Throttled, &s.Retries} {
		*n = max(*n, 0)
	}
	s.Total = max(s.Total, unknown)
	s.Resumed = min(s.Resumed, s.Done)
	s.InFlight, s.Concurrency = max(s.InFlight, 0), max(s.Concurrency, 0)
	for _, d := range []*time.Duration{&s.P50, &s.P95, &s.PausedFor, &s.Elapsed} {
		*d = max(*d, 0)
	}
	for _, t := range []*string{&s.Name, &s.State, &s.Limit, &s.Bound, &s.PauseReason} {
		*t = Printable(*t)
	}
	return s
}
