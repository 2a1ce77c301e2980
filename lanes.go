package mete

import "math"

// lane is one order of service among several that share a gate.
type lane struct {
	Lane
	holders       bool    // those that hold a permit and wait for tokens only; always first
	gone          bool    // by an update; it takes nobody in and reserves nothing
	first, last   *waiter // service
	oldest, young *waiter // giving up
	waiting       int
	used          int64 // permits
	vt            float64
	ahead         []int64 // cost of all that wait, by limit
}

// fits reports whether a lane may take weight more permits: they are free,
// within its cap, and not reserved for others.
func (q *queue) fits(l *lane, weight int64) bool {
	if weight == 0 {
		return true // it holds its permits already, also if there are fewer now
	}
	if q.auto != nil && q.inUse == 0 {
		return true // a heavy call does not wait for the limit to grow
	}
	free := q.permits - q.inUse
	if weight > free || l.used+weight > q.most(l) {
		return false
	}
	if len(q.lanes) == 2 || l.used+weight <= q.reserve(l) {
		return true
	}
	for _, other := range q.lanes {
		if other != l {
			free -= max(q.reserve(other)-other.used, 0)
		}
	}
	return weight <= free
}

// rounding is what a part of the permits may lack of a whole number.
const rounding = 1e-9

// reserve is how many permits are the lane's own.
func (q *queue) reserve(l *lane) int64 { return l.reserveOf(q.permits) }

// most is how many permits the lane may use by its own cap.
func (q *queue) most(l *lane) int64 { return l.mostOf(q.permits) }

// reserveOf is rounded down: rounded up, the reserves could leave nothing to
// the lanes that have none.
func (l *lane) reserveOf(permits int64) int64 {
	if l.Reserve <= 0 || l.gone || permits == math.MaxInt64 {
		return 0
	}
	return min(int64(l.Reserve*float64(permits)+rounding), l.mostOf(permits))
}

func (l *lane) mostOf(permits int64) int64 {
	if l.Cap <= 0 || l.Cap == 1 || permits == math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(l.Cap*float64(permits)+rounding), 1)
}

// holders is the lane of those that hold their permits already.
func (q *queue) holders() *lane { return q.lanes[len(q.lanes)-1] }

// head is the waiter whose turn it is: the first of the lane with the least
// virtual time among those that their own cap does not keep back. It waits
// for its permits and nobody passes it, so a heavy call does not starve; only
// the reserve of a lane is its own even then, and takes nothing from the head.
func (q *queue) head() *waiter {
	last := len(q.lanes) - 1
	switch {
	case q.lanes[last].first != nil:
		return q.lanes[last].first
	case last == 1:
		return q.lanes[0].first
	}
	best := q.least(func(l *lane) bool { return l.used+l.first.weight <= q.most(l) })
	if best == nil {
		return q.least(func(*lane) bool { return true }).first
	}
	if !q.fits(best, best.first.weight) {
		own := q.least(func(l *lane) bool {
			return l.used+l.first.weight <= q.reserve(l) && q.fits(l, l.first.weight)
		})
		if own != nil {
			best = own
		}
	}
	return best.first
}

// least is the lane with the least virtual time among those that wait and
// match; nil if there is none.
func (q *queue) least(match func(*lane) bool) (best *lane) {
	for _, l := range q.lanes {
		if l.first != nil && (best == nil || l.vt < best.vt) && match(l) {
			best = l
		}
	}
	return best
}

// enqueue puts a waiter in its lane: at the end, or a retry at the head, but
// never ahead of a waiter older than its first attempt.
func (q *queue) enqueue(w *waiter, retry bool) {
	l := w.lane
	if l.first == nil {
		l.vt = max(l.vt, q.vt)
	}
	var before *waiter // w goes behind it
	if retry {
		for n := l.first; n != nil && n.born <= w.born; n = n.next {
			before = n
		}
	} else if l.last != nil {
		before = l.last
	}
	w.prev = before
	if before == nil {
		w.next, l.first = l.first, w
	} else {
		w.next, before.next = before.next, w
	}
	if w.next == nil {
		l.last = w
	} else {
		w.next.prev = w
	}
	if w.expire > 0 {
		// At the end, unless the patience of the lane has been lowered.
		w.until = l.young
		for w.until != nil && w.until.expire > w.expire {
			w.until = w.until.until
		}
		if w.until == nil {
			w.after, l.oldest = l.oldest, w
		} else {
			w.after, w.until.after = w.until.after, w
		}
		if w.after == nil {
			l.young = w
		} else {
			w.after.until = w
		}
	}
	l.waiting++
	q.waiting++
	for i := range q.limits {
		l.ahead[i] += q.cost(w.costs, i)
	}
	w.queued = true
}

func (q *queue) remove(w *waiter) {
	l := w.lane
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	if w.expire > 0 {
		if w.until == nil {
			l.oldest = w.after
		} else {
			w.until.after = w.after
		}
		if w.after == nil {
			l.young = w.until
		} else {
			w.after.until = w.until
		}
	}
	w.next, w.prev, w.after, w.until = nil, nil, nil, nil
	l.waiting--
	q.waiting--
	for i := range q.limits {
		l.ahead[i] -= q.cost(w.costs, i)
	}
	w.queued = false
}

// capacity is how many permits a call of the lane can have when nothing else
// is in use and there are as many as there can be.
func (q *queue) capacity(l *lane) int64 {
	all := q.mostPermits()
	if len(q.lanes) == 2 {
		return min(all, l.mostOf(all))
	}
	shared := all
	for _, other := range q.lanes {
		if other != l {
			shared -= other.reserveOf(all)
		}
	}
	return min(max(shared, l.reserveOf(all)), all, l.mostOf(all))
}
