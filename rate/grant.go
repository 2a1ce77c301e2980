package rate

import "github.com/metehq/mete/internal/meter"

// Grant is what [Limiter.Take] was charged. A call whose true cost is known
// only at its end settles it; a call that does not start after all cancels it.
// The first of Settle and Cancel counts, whoever calls it; after it both do
// nothing. So
//
//	defer grant.Cancel()
//
// gives the units back on every way out that has not settled. A grant that is
// neither settled nor cancelled stays charged as taken. The methods of a nil
// Grant do nothing.
type Grant struct {
	limiter *Limiter
	charge  meter.Charge
	closed  bool // guarded by the limiter's mutex
}

// Settle replaces the units taken by those that were really used. What was
// not used returns to the instant at which it was taken, as if it had never
// been: never above what the limit holds. What was used beyond is charged now,
// if need be as a debt that those who come later wait for. A negative actual
// counts as 0, one above [MaxUnits] as MaxUnits. Those who wait are planned
// anew at once.
func (g *Grant) Settle(actual int64) {
	if g == nil {
		return
	}
	l := g.limiter
	now := l.clock()
	l.lock()
	if g.closed {
		l.unlock()
		return
	}
	g.closed = true
	now = l.at(now)
	l.scratch = g.charge // so that g itself may live on the stack
	l.meter.Settle(now, &l.scratch, min(max(actual, 0), MaxUnits))
	l.stepAndUnlock(now)
}

// keep says that the charge is of a Grant. The caller holds mu.
func (l *Limiter) keep(c *meter.Charge) {
	if b, ok := l.meter.(*meter.Bucket); ok {
		b.Keep(c)
	}
}

// Cancel undoes the grant: the limit stands as if it had not been taken.
func (g *Grant) Cancel() { g.Settle(0) }
