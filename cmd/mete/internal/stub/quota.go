package stub

import (
	"math"
	"time"
)

// quota is the provider's own count of accepted requests. Times are those of
// the arrivals, which may come slightly out of order.
type quota struct {
	window   Window
	burst    int64
	limits   []Limit
	wall     int64 // Unix nanoseconds at time 0, for windows aligned to the clock
	accepted timeline
	buckets  []bucket
}

type bucket struct {
	level float64
	last  int64
}

// standing is what a caller may know about one limit.
type standing struct {
	limit     Limit
	remaining int64
	wait      time.Duration // until one more would be accepted; 0 is now
	full      time.Duration // until the whole limit is there again
}

// set replaces the limits. Buckets start full, or empty when they replace
// others: a change must not give capacity away.
func (q *quota) set(limits []Limit, t int64) {
	first := q.buckets == nil
	q.limits = limits
	q.buckets = make([]bucket, len(limits))
	for i, l := range limits {
		q.buckets[i].last = t
		if first {
			q.buckets[i].level = q.capacity(l)
		}
	}
}

func (q *quota) capacity(l Limit) float64 {
	if q.burst > 0 {
		return float64(q.burst)
	}
	return float64(l.N)
}

// take charges an arrival at t to all limits, or to none and returns how long
// it would have to wait.
func (q *quota) take(t int64) (wait time.Duration, ok bool) {
	for i := range q.limits {
		wait = max(wait, q.standing(i, t).wait)
	}
	if wait > 0 {
		return wait, false
	}
	if len(q.limits) == 0 {
		return 0, true
	}
	if q.window == Bucket {
		for i := range q.buckets {
			q.buckets[i].level--
		}
		return 0, true
	}
	q.accepted.insert(t)
	return 0, true
}

func (q *quota) standing(i int, t int64) standing {
	switch q.window {
	case Bucket:
		return q.inBucket(i, t)
	case Fixed:
		return q.inFixed(q.limits[i], t)
	}
	return q.inSliding(q.limits[i], t)
}

// inSliding counts what was accepted in (t-W, t].
func (q *quota) inSliding(l Limit, t int64) standing {
	end := q.accepted.after(t)
	used := int64(end - q.accepted.after(t-int64(l.Per)))
	st := standing{limit: l, remaining: max(0, l.N-used)}
	if used > 0 {
		st.full = time.Duration(q.accepted.at(end-1) + int64(l.Per) - t)
	}
	switch {
	case l.N == 0:
		st.wait = l.Per
	case used >= l.N:
		st.wait = time.Duration(q.accepted.at(end-int(l.N)) + int64(l.Per) - t)
	}
	return st
}

// inFixed counts what was accepted in the clock's period that holds t.
func (q *quota) inFixed(l Limit, t int64) standing {
	per := int64(l.Per)
	start := t - (q.wall+t)%per
	used := int64(q.accepted.after(start+per-1) - q.accepted.after(start-1))
	st := standing{limit: l, remaining: max(0, l.N-used), full: time.Duration(start + per - t)}
	if used >= l.N {
		st.wait = st.full
	}
	return st
}

// inBucket refills the bucket up to t first. A whole token may be short by
// rounding, never by more than a billionth.
func (q *quota) inBucket(i int, t int64) standing {
	l, b := q.limits[i], &q.buckets[i]
	rate := float64(l.N) / float64(l.Per)
	capacity := q.capacity(l)
	if t > b.last {
		b.level = min(capacity, b.level+float64(t-b.last)*rate)
		b.last = t
	}
	const eps = 1e-9
	st := standing{limit: l, remaining: max(0, int64(b.level+eps))}
	if l.N == 0 {
		if st.remaining == 0 {
			st.wait = l.Per
		}
		return st
	}
	st.full = time.Duration(math.Ceil((capacity-b.level)/rate - eps))
	if b.level < 1-eps {
		st.wait = time.Duration(math.Ceil((1-b.level)/rate - eps))
	}
	return st
}

// forget drops what no window can see any more.
func (q *quota) forget(before int64) { q.accepted.forget(before) }
