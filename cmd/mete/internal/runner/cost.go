package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cost"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/semaphore"
)

// units are those that a row has a cost in, requests excepted: of limits, of
// expressions, and of the bounds of the run.
func (s *Spec) units() []string {
	var units []string
	add := func(unit string) {
		if unit != "" && unit != mete.Requests && !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	for _, l := range s.Gate.Limits {
		add(l.Unit)
	}
	for _, r := range s.Costs {
		add(r.Unit)
	}
	for _, b := range s.Bounds {
		add(b)
	}
	return units
}

// rule is what the user says of a unit.
func (s *Spec) rule(unit string) cost.Rule {
	for _, r := range s.Costs {
		if r.Unit == unit {
			return r
		}
	}
	return cost.Rule{Unit: unit}
}

// must reports whether a row cannot go without a cost in unit.
func (s *Spec) must(unit string) bool {
	return slices.Contains(s.Bounds, unit) || slices.ContainsFunc(s.Gate.Limits, func(l mete.Limit) bool { return l.Unit == unit })
}

// call is what a row asks of its provider's gate. The error is of a row whose
// cost cannot be told, or is more than there ever is.
func (p *known) call(row *input.Row) (mete.Call, error) {
	c := mete.Call{Lane: row.Lane, Wire: true, Patient: true} // a breaker that is open is waited for
	if !p.hasLane(row.Lane) {
		return c, fmt.Errorf("the row's lane %q is not among the lanes of the configuration", row.Lane)
	}
	set := func(unit string, n int64) {
		if c.Costs == nil {
			c.Costs = map[string]int64{}
		}
		c.Costs[unit] = n
	}
	if n, ok := row.Cost[mete.Requests]; ok {
		set(mete.Requests, n)
	}
	for _, unit := range p.spec.units() {
		n, ok := row.Cost[unit]
		if !ok {
			n, ok = row.Cost[""]
		}
		if e := p.spec.rule(unit).Estimate; !ok && e != nil {
			var err error
			if n, err = e.Estimate(priced(row)); err != nil {
				return c, fmt.Errorf("the row's cost in %s cannot be told: %s: %w", unit, e, err)
			}
			ok = true
		}
		switch {
		case ok:
			set(unit, n)
		case p.spec.must(unit):
			return c, fmt.Errorf("the row has no cost in %s: say what rows cost with --cost '%[1]s=len(body)/4', or give this one \"cost\": {%[1]q: n}", unit)
		}
	}
	for _, l := range p.spec.Gate.Limits {
		unit := l.Unit
		if unit == "" {
			unit = mete.Requests
		}
		if n, most := c.Costs[unit], capacity(l); n > most && l.N > 0 && l.Oversize == "" {
			return c, tooLarge(l, n, most)
		}
	}
	return c, nil
}

// hasLane reports whether rows may name a lane; every provider has the usual one.
func (p *known) hasLane(name string) bool {
	return name == "" || slices.ContainsFunc(p.spec.Gate.Lanes, func(l mete.Lane) bool { return l.Name == name })
}

// capacity is the most that a limit lets start at once.
func capacity(l mete.Limit) int64 {
	if l.Bucket {
		return max(l.Burst, 1)
	}
	return l.N
}

func tooLarge(l mete.Limit, n, most int64) error {
	name := l.String()
	if l.Name != "" && !strings.Contains(name, l.Name) {
		name = l.Name + ", which is " + name
	}
	if l.Bucket {
		name += fmt.Sprintf(" with a burst of %d", most)
	}
	return fmt.Errorf("the row costs %d %s, more than the limit %s, ever lets start: make it smaller, or admit it by itself with oversize: alone in the limit", n, unitOf(l), name)
}

// priced is what expressions may look at in a row.
func priced(row *input.Row) *cost.Request {
	q := &cost.Request{Method: row.Method, Body: row.Body, Size: int64(len(row.Body)), Row: row.Meta}
	if row.URL != nil {
		q.URL = row.URL.String()
	}
	if row.BodyFile != "" {
		q.Size = row.BodySize
	}
	return q
}

// response takes in what expressions need of a response; nil if they need none.
func (s *Spec) response(x *exchanged) *cost.Response {
	if !slices.ContainsFunc(s.Costs, func(r cost.Rule) bool { return r.Actual != nil }) {
		return nil
	}
	return cost.NewResponse(x.status, x.header)
}

// needsBody reports whether the body of a response tells its cost.
func (s *Spec) needsBody() bool {
	return slices.ContainsFunc(s.Costs, func(r cost.Rule) bool { return r.Actual != nil && r.Actual.NeedsResponse() })
}

// settle learns what an attempt did cost and tells the gate, which gives back
// what was estimated too high. What cannot be told stays as it was estimated;
// what did not go out cost nothing.
func (r *run) settle(rec *record.Record, p *provider, permit *mete.Permit, x *exchanged, q *request, reserved []reservation) {
	var actual map[string]int64
	for _, unit := range p.spec.units() {
		e := p.spec.rule(unit).Actual
		if e == nil || x.priced == nil || x.attempt.Err != nil {
			continue
		}
		n, err := e.Actual(q.priced(), x.priced)
		if err != nil {
			// An answer that is none of the provider's seldom tells its cost.
			if x.status/100 == 2 && r.tally.unpriced.Add(1) == 1 {
				r.o.Note(fmt.Sprintf("row %s: the true cost in %s cannot be told, so the estimate stands: %s: %v", rec.ID, unit, e, err))
			}
			p.unpriced(unit)
			continue
		}
		if actual == nil {
			actual = map[string]int64{}
		}
		actual[unit] = n
	}
	if len(actual) > 0 {
		permit.Settle(actual)
	}
	sent := !x.sent.IsZero()
	for _, unit := range p.spec.units() {
		est, act := q.costs[unit], int64(0)
		if sent {
			act = est
			if n, ok := actual[unit]; ok {
				act = n
			}
		}
		charge(rec, unit, est, act)
		if sent {
			p.paid(unit, x.sent, est, act)
		}
	}
	for _, b := range reserved {
		n := int64(0)
		if sent {
			n = q.costs[b.of.unit]
			if a, ok := actual[b.of.unit]; ok {
				n = a
			}
		}
		b.spent(n)
	}
}

// charge adds what an attempt cost to a record, whose estimate is that of one
// attempt.
func charge(rec *record.Record, unit string, est, act int64) {
	i := slices.IndexFunc(rec.Costs, func(c record.Cost) bool { return c.Unit == unit })
	if i < 0 {
		i = len(rec.Costs)
		rec.Costs = append(rec.Costs, record.Cost{Unit: unit, Estimate: float64(est)})
	}
	rec.Costs[i].True += float64(act)
}

// costBound is --max-cost in one unit. What may still be spent is a semaphore:
// an attempt takes its estimate before it queues and gives it back when its
// cost is known, by which what is left becomes less.
type costBound struct {
	unit  string
	most  int64
	left  *semaphore.Semaphore
	mu    sync.Mutex
	spent int64
}

func newCostBound(unit string, most, spent int64) *costBound {
	return &costBound{unit: unit, most: most, spent: spent, left: semaphore.New(most - spent)}
}

// reservation is the estimate of one attempt.
type reservation struct {
	of     *costBound
	permit semaphore.Permit
}

// spent ends a reservation with what the attempt did cost.
func (b reservation) spent(n int64) {
	b.of.mu.Lock()
	b.of.spent += n
	b.of.left.Resize(b.of.most - b.of.spent)
	b.of.mu.Unlock()
	b.permit.Release()
}

// reserveCosts takes the estimate of an attempt out of every --max-cost. It
// waits while others hold what would be needed, and reports false, and ends the
// run, when that could not be enough either.
func (r *run) reserveCosts(ctx context.Context, id string, q *request) ([]reservation, bool) {
	var held []reservation
	for _, b := range r.policy.costs { // always in this order: nobody waits in a circle
		n := q.costs[b.unit]
		if n == 0 {
			continue
		}
		permit, err := b.left.Acquire(ctx, n)
		if err == nil {
			held = append(held, reservation{b, permit})
			continue
		}
		release(held)
		if errors.Is(err, semaphore.ErrTooLarge) {
			b.mu.Lock()
			spent := b.spent
			b.mu.Unlock()
			r.fatal(&Stopped{fmt.Sprintf("--max-cost %s=%d: %d are spent, and row %s is taken to cost %d", b.unit, b.most, spent, id, n)})
		}
		return nil, false
	}
	return held, true
}

func release(held []reservation) {
	for _, b := range held {
		b.permit.Release()
	}
}

func unitOf(l mete.Limit) string {
	if l.Unit == "" {
		return mete.Requests
	}
	return l.Unit
}

// costFigures are what a provider was paid, in the order of its units.
func (p *provider) costFigures() []progress.Cost {
	list := slices.Clone(p.costs)
	for i := range list {
		c := &list[i]
		c.Limit, c.LimitPerSecond = pacing(p.spec.Gate.Limits, c.Unit, c.True)
	}
	return list
}
