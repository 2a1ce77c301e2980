package meter

import (
	"math"
	"time"
)

// Doubt is how long a remainder of nothing is believed that nobody repeats:
// then one unit is let through to see whether it is still so.
const Doubt = 5 * time.Minute

// Allowance is a meter of what a provider says that it will still take. It
// counts all units that were taken, and the provider's remainder is a mark on
// that count; so a statement that comes late, after others have been granted,
// still means what it meant.
type Allowance struct {
	total int64         // taken in all
	most  int64         // total must not pass it; math.MaxInt64 is no bound
	mark  int64         // total when most was said
	said  time.Duration // when that was
	from  time.Duration // since when units flow back
	until time.Duration // when it ends, or is doubted
	looks bool          // a unit was let through in doubt
	now   Remainder
}

// Remainder is a statement about what is left.
type Remainder struct {
	// Most is the count that the total may reach.
	Most int64
	// Reset is when the window ends. Limit is how many units each further one
	// holds, Window its length; 0 is not known.
	Reset  time.Duration
	Limit  int64
	Window time.Duration
	// Each is the time in which a unit flows back before; 0 is none.
	Each time.Duration
}

// NewAllowance returns an allowance without a bound.
func NewAllowance() *Allowance { return &Allowance{most: math.MaxInt64} }

// Total is how many units were taken in all.
func (a *Allowance) Total() int64 { return a.total }

// Limit is how many units a window holds, as was said; 0 is not known.
func (a *Allowance) Limit() int64 { return a.now.Limit }

// Say puts a statement in force.
func (a *Allowance) Say(now time.Duration, r Remainder) {
	if r.Reset <= now {
		a.Lift()
		return
	}
	a.now, a.most, a.mark, a.said, a.from, a.looks = r, r.Most, a.total, now, now, false
	a.until = min(r.Reset, now+Doubt)
}

// Lift ends what was said.
func (a *Allowance) Lift() { a.most, a.until, a.looks = math.MaxInt64, 0, false }

// Said is when the last statement was made or doubted.
func (a *Allowance) Said() time.Duration { return a.said }

// Doubtful reports whether a unit was let through to see whether it is still so.
func (a *Allowance) Doubtful() bool { return a.looks }

// turn begins the next window when one is over.
func (a *Allowance) turn(now time.Duration) {
	if a.most == math.MaxInt64 || now < a.until {
		return
	}
	r := &a.now
	switch {
	case now < r.Reset:
		a.looks = true
		a.most, a.mark, a.said, a.from = max(a.most, a.total+1), a.total, now, now
		a.until = min(r.Reset, now+Doubt)
	case r.Limit > 0 && r.Window > 0 && now-a.said < r.Window+2*Doubt:
		r.Reset += (now-r.Reset)/r.Window*r.Window + r.Window
		a.most, a.mark, a.from, a.looks = a.total+r.Limit, a.total, now, false
		a.until = min(r.Reset, now+Doubt) // the window that follows is a guess, too
	default:
		a.Lift()
	}
}

// left is what may still be taken at now.
func (a *Allowance) left(now time.Duration) int64 {
	a.turn(now)
	if a.most == math.MaxInt64 {
		return math.MaxInt64 / 4
	}
	n := a.most - a.total
	if a.now.Each > 0 {
		n += int64((now - a.from) / a.now.Each)
	}
	if limit := a.now.Limit; limit > 0 && n >= limit {
		// It is full: what flowed back beyond that is lost.
		n, a.most, a.from = limit, a.total+limit, now
	}
	return n
}

// Capacity implements Meter: what is too much for one window is let through
// when it is all there.
func (a *Allowance) Capacity() int64 { return math.MaxInt64 / 4 }

// Ready implements Meter.
func (a *Allowance) Ready(now time.Duration, n int64) time.Duration { return a.Backlog(now, 0, n) }

// Backlog implements Meter.
func (a *Allowance) Backlog(now time.Duration, ahead, n int64) time.Duration {
	left := a.left(now)
	if a.now.Limit > 0 {
		n = min(n, a.now.Limit)
	}
	missing := ahead + n - left
	if missing <= 0 {
		return now
	}
	t := a.until
	if each := a.now.Each; each > 0 && missing < int64((t-a.from)/each) {
		whole := (now - a.from) / each // as left counts
		t = min(t, a.from+(whole+time.Duration(missing))*each)
	}
	return t
}

// Take implements Meter.
func (a *Allowance) Take(now time.Duration, n int64, _ bool) Charge {
	a.left(now)
	a.total += n
	return Charge{n: n, at: now, cell: uint64(a.total), mark: mark(0, true)}
}

// Sent implements Meter.
func (a *Allowance) Sent(time.Duration, *Charge) {}

// Settle implements Meter. What was charged before the last statement is in it
// already.
func (a *Allowance) Settle(_ time.Duration, c *Charge, actual int64) {
	if int64(c.cell) > a.mark {
		a.total += actual - c.n
	}
	c.n = actual
}

// Free implements Meter.
func (a *Allowance) Free(now time.Duration) int64 { return a.left(now) }

// Stretch implements Meter: nothing is paced.
func (a *Allowance) Stretch(time.Duration, float64) {}

// Rebase implements Meter.
func (a *Allowance) Rebase(time.Duration) { a.Lift() }

// Spent implements Meter: what a provider said is in force or not, and does
// not outlive the process.
func (a *Allowance) Spent(now time.Duration) []Spent {
	if a.turn(now); a.most == math.MaxInt64 {
		return nil
	}
	return []Spent{{Units: 1}}
}

// Restore implements Meter.
func (a *Allowance) Restore(time.Duration, []Spent) {}
