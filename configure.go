package mete

import (
	"math"
	"slices"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/internal/meter"
)

// Update puts a new configuration in force at once, also for the calls that
// wait. Limits are told apart by name and unit. It never creates capacity:
// what was consumed stays booked, and permits in use are not taken away. Name
// and State cannot be changed.
func (g *Gate) Update(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.configure(now, cfg)
	g.q.sweep(func(w *waiter) (Reason, time.Duration) {
		r, _ := g.q.impossible(w.lane, w.weight, w.costs)
		return r, 0
	})
	g.stepAndUnlock(now)
	return nil
}

func (g *Gate) configure(now time.Duration, cfg Config) {
	q := &g.q
	g.cfg.Store(&cfg)
	g.budget.Share = cfg.Retry.Budget
	switch {
	case cfg.Concurrency == 0:
		q.permits = math.MaxInt64
	case cfg.Concurrency < 0:
		q.permits = 0
	default:
		q.permits = int64(cfg.Concurrency)
	}
	q.configureAuto(now, cfg.Adaptive)
	if q.circuit == nil {
		q.circuit = breaker.New(cfg.Breaker)
	}
	q.circuit.Update(cfg.Breaker)
	q.configureLanes(cfg.Lanes)
	if q.learned.mode = cfg.Learn; !cfg.Learn.binds() {
		q.forget()
	}
	q.configureLimits(now, cfg.Limits, g.attempts)
}

func (q *queue) configureLanes(lanes []Lane) {
	if len(lanes) == 0 {
		lanes = []Lane{{Name: "default"}}
	}
	old := q.lanes
	q.lanes = nil
	for _, spec := range lanes {
		l := &lane{vt: q.vt}
		for _, o := range old {
			if o.Name == spec.Name && !o.holders {
				l = o
			}
		}
		l.Lane, l.gone = spec, false
		if l.Weight <= 0 {
			l.Weight = 1
		}
		q.lanes = append(q.lanes, l)
	}
	// A lane that is gone but in use stays until nobody needs it.
	for _, o := range old {
		gone := o.waiting > 0 || o.used > 0 || o.holders
		for _, l := range q.lanes {
			gone = gone && l != o
		}
		if gone {
			o.gone = !o.holders
			q.lanes = append(q.lanes, o)
		}
	}
	if len(old) == 0 {
		q.lanes = append(q.lanes, &lane{Lane: Lane{Weight: 1}, holders: true})
	}
	for i, l := range q.lanes {
		if l.holders {
			last := len(q.lanes) - 1
			q.lanes[i], q.lanes[last] = q.lanes[last], l
		}
	}
}

func (q *queue) configureLimits(now time.Duration, limits []Limit, started int64) {
	inForce := make([]bool, len(q.limits))
	for i := range q.limits {
		if l := &q.limits[i]; !l.learned {
			inForce[i], l.removed = !l.removed, true
		}
	}
	for _, spec := range limits {
		if l := q.predecessor(spec, limits, inForce); l != nil {
			l.Limit, l.removed = spec, false
			updateMeter(now, l.meter, spec, paced(spec, limits))
		} else {
			m := newMeter(spec, paced(spec, limits))
			if n := min(m.Capacity(), started); n > 0 {
				// What was started before may count against a limit that comes
				// later, or comes back.
				m.Take(now, n, true)
			}
			place := slices.IndexFunc(q.limits, func(l limit) bool {
				return l.removed && l.bound() == spec.bound() && l.unit() == spec.unit()
			})
			if place < 0 {
				place = len(q.limits)
				q.limits = append(q.limits, limit{})
			}
			q.limits[place] = limit{Limit: spec, meter: m}
		}
	}
	q.recount()
	q.pause.stretch = 0
	q.lower(now)
	q.pace(now)
}

// recount makes room for limits that were added and counts what waits for each.
func (q *queue) recount() {
	q.blocked = append(q.blocked, make([]time.Duration, boundLimits+len(q.limits)-len(q.blocked))...)
	for _, l := range q.lanes {
		l.ahead = make([]int64, len(q.limits))
		for w := l.first; w != nil; w = w.next {
			if w.named != nil {
				w.costs = q.costs(w.named)
				w.flight.costs = w.costs
			}
			for i := range q.limits {
				l.ahead[i] += q.cost(w.costs, i)
			}
		}
	}
}

// predecessor is the limit whose history a limit of a new configuration goes
// on with: the one of its name. One without a name goes on with another of its
// unit that has none either and is no longer there, if it can the one with the
// same period.
func (q *queue) predecessor(spec Limit, limits []Limit, inForce []bool) (found *limit) {
	for i := range inForce {
		l := &q.limits[i]
		if !inForce[i] || !l.removed || l.unit() != spec.unit() || !sameModel(l.Limit, spec) {
			continue
		}
		if l.bound() == spec.bound() {
			return l
		}
		stays := slices.ContainsFunc(limits, func(o Limit) bool { return o.bound() == l.bound() && o.unit() == l.unit() })
		if l.Name == "" && spec.Name == "" && !stays && (found == nil || l.Per == spec.Per) {
			found = l
		}
	}
	return found
}

func sameModel(a, b Limit) bool {
	return a.Bucket == b.Bucket && (a.Calendar != "") == (b.Calendar != "")
}

// paced reports whether starts under the limit keep a distance: they do under
// the shortest window of each unit.
func paced(l Limit, all []Limit) bool {
	for _, o := range all {
		if o.unit() == l.unit() && !o.Bucket && o.Calendar == "" && o.Per < l.Per {
			return false
		}
	}
	return true
}

func (l Limit) window(paced bool) meter.WindowSpec {
	return meter.WindowSpec{N: l.N, Per: l.Per, Burst: l.Burst, Paced: paced, Bulk: l.unit() != Requests, Margin: l.Margin, Alone: l.Oversize != ""}
}

func (l Limit) bucket() meter.BucketSpec {
	return meter.BucketSpec{N: l.N, Per: l.Per, Burst: l.Burst, Alone: l.Oversize != ""}
}

func (l Limit) calendar() meter.CalendarSpec {
	zone, err := time.LoadLocation(l.Zone)
	if err != nil {
		zone = time.UTC // check has refused it
	}
	return meter.CalendarSpec{N: l.N, Each: l.Calendar, Zone: zone}
}

func newMeter(l Limit, paced bool) meter.Meter {
	switch {
	case l.Calendar != "":
		return meter.NewCalendar(l.calendar())
	case l.Bucket:
		return meter.NewBucket(l.bucket())
	}
	return meter.NewWindow(l.window(paced))
}

func updateMeter(now time.Duration, m meter.Meter, l Limit, paced bool) {
	switch m := m.(type) {
	case *meter.Calendar:
		m.Update(now, l.calendar())
	case *meter.Bucket:
		m.Update(now, l.bucket())
	case *meter.Window:
		m.Update(now, l.window(paced))
	}
}
