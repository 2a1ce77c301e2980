package mete

import (
	"slices"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/internal/meter"
)

// The bounds that are not limits, as indices. Limits follow in their order.
const (
	boundSemaphore = iota
	boundPause
	boundBreaker
	boundStore
	boundAuto // the rate that an adaptive concurrency was taught
	boundLimits
)

const noBound = -1

var boundNames = [boundLimits]string{"semaphore", "pause", "breaker", "store", "limit:auto"}

// waiter is a call that queues. It lives in two lists of its lane: the order
// of service, and the order in which patience ends.
type waiter struct {
	next, prev   *waiter // order of service
	after, until *waiter // order in which they give up: the next and the previous
	lane         *lane
	weight       int64
	costs        []int64          // by limit; nil is one request
	named        map[string]int64 // the costs as the call named them
	born         time.Duration
	expire       time.Duration // when it gives up waiting; 0 is never
	deadline     time.Duration // its caller's deadline; 0 is none
	flight       *flight
	ready        chan struct{}   // capacity 1
	blocked      []time.Duration // the queue's blocked times when it came
	waits        Waits
	outcome      Reason // why it was refused; empty once granted
	retryAfter   time.Duration
	patient      bool          // waits whatever happens
	maxPause     time.Duration // the longest pause it sits out; 0 is any
	queued       bool
	again        bool    // a repeated attempt
	chain        *waiter // of those to wake
}

// limit is one quota in force.
type limit struct {
	Limit
	meter   meter.Meter
	learned bool    // from responses, not configured
	lowered float64 // the part of its pace that was taken by what was learned
	removed bool    // by an update; it keeps its place and its history
	// For durable state: units since the last writing, and the most of them.
	taken, peak int64
}

// queue is the admission of a gate: what is in force, who waits, and the one
// decision who may start. It is plain data, stepped by operations that are
// given the time; the gate holds its lock around them.
type queue struct {
	permits int64 // math.MaxInt64 is no bound
	inUse   int64
	lanes   []*lane // the last one is for holders
	limits  []limit
	pause   pause
	learned learned
	auto    *auto // nil where the number of permits is fixed
	circuit *breaker.Circuit
	vt      float64
	waiting int
	// The time for which the queue's head was blocked, by bound, as of booked.
	blocked []time.Duration
	bound   int
	booked  time.Duration
	closed  bool
	work    work
	leases  leases  // with Config.FindLeaks
	spare   *flight // the first of those to be used again
	spares  int
	wake    *waiter // to be woken by the gate once its lock is free
}

// cost is what a call pays of limit i.
func (q *queue) cost(costs []int64, i int) int64 {
	l := &q.limits[i]
	switch {
	case l.removed:
		return 0
	case i < len(costs):
		return costs[i]
	case l.unit() == Requests:
		return 1
	}
	return 0
}

// book charges the time since the last operation to what blocks the head.
func (q *queue) book(now time.Duration) {
	if q.bound != noBound && now > q.booked {
		q.blocked[q.bound] += now - q.booked
	}
	q.booked = now
}

// check finds what keeps a call from starting now. It reports noBound, or the
// bound and the time at which it may give way (meter.Later: when something
// else happens). Of several the first in the order pause, breaker, semaphore
// counts, then the limit that is ready last.
func (q *queue) check(now time.Duration, l *lane, weight int64, costs []int64) (bound int, until time.Duration) {
	if at := q.pause.closed(now); at > now {
		return boundPause, at
	}
	if at := q.circuit.Ready(now); at > now {
		return boundBreaker, at
	}
	if !q.fits(l, weight) {
		return boundSemaphore, meter.Later
	}
	if at := q.pause.narrow(now, q.inUse, weight, q.permits); at > now {
		return boundPause, at
	}
	bound, until = noBound, now
	if at := q.auto.ready(now); at > now {
		bound, until = boundAuto, at
	}
	for i := range q.limits {
		n := q.cost(costs, i)
		if n == 0 {
			continue
		}
		if at := q.limits[i].meter.Ready(now, n); at > until {
			bound, until = boundLimits+i, at
		}
	}
	if bound != noBound && q.pause.ramping(now) {
		bound = boundPause
	}
	return bound, until
}

// turn is how long a budget may keep a call back at the turn of its period,
// when nothing starts because the provider's clock is not ours.
const turn = 3 * time.Second

// spent reports whether a call is not to wait for a calendar limit that is used
// up until then: the limit is a budget, or the wait longer than it sits out.
func (q *queue) spent(now time.Duration, w *waiter, bound int, until time.Duration) bool {
	if bound < boundLimits {
		return false
	}
	l, wait := &q.limits[bound-boundLimits], until-now
	return l.Calendar != "" && (l.Budget && wait > turn || w.maxPause > 0 && wait > w.maxPause)
}

// idle reports whether there is nothing to step: nobody waits or has waited
// since the last step.
func (q *queue) idle() bool { return q.waiting == 0 && q.bound == noBound && q.wake == nil }

// step grants whoever may start now, and reports when to step again.
func (q *queue) step(now time.Duration) (again time.Duration) {
	again = meter.Later
	q.bound = noBound
	q.pace(now)
	for q.waiting > 0 {
		w := q.head()
		bound, until := q.check(now, w.lane, w.weight, w.costs)
		if bound != noBound {
			if q.spent(now, w, bound, until) {
				q.refuse(w, Budget, until-now)
				w.waits.Bound = q.boundName(bound)
				continue
			}
			q.auto.blocked(now, bound)
			q.bound, again = bound, until
			if q.pause.ramping(now) {
				again = min(again, q.pause.nextStep(now))
			}
			break
		}
		q.remove(w)
		q.grant(now, w.flight)
		w.flight.waits = q.waited(w)
		q.wakeUp(w)
	}
	for _, l := range q.lanes {
		if l.oldest != nil {
			again = min(again, l.oldest.expire)
		}
	}
	return q.auto.again(again)
}

// grant takes the permits, every limit's cost and, after a pause, the probe.
func (q *queue) grant(now time.Duration, f *flight) {
	l := f.lane
	q.inUse += f.weight
	l.used += f.weight
	l.vt = max(l.vt, q.vt)
	q.vt = l.vt
	l.vt += float64(f.weight) / l.Weight
	f.granted, f.looks = now, q.learned.look(now)
	f.paid = slices.Grow(f.paid[:0], len(q.limits))[:len(q.limits)]
	for i := range q.limits {
		l, pay := &q.limits[i], &f.paid[i]
		pay.meter = l.meter
		if n := q.cost(f.costs, i); n > 0 {
			pay.charge = l.meter.Take(now, n, !f.wire)
			l.taken += n
		} else {
			pay.charge = meter.Charge{}
		}
	}
	if q.auto != nil {
		q.auto.granted(now, f, q.inUse)
	}
	q.pause.granted(f)
	f.ticket = q.circuit.Start(now)
}

// ended tells the circuit breaker how an attempt ended. If it opens, whoever
// does not wait for it is refused.
func (q *queue) ended(now time.Duration, f *flight, r breaker.Result) {
	opened := q.circuit.End(now, f.ticket, r)
	f.ticket = breaker.Ticket{}
	if opened {
		q.sweep(func(w *waiter) (Reason, time.Duration) {
			if w.patient {
				return "", 0
			}
			return Breaker, q.circuit.Ready(now) - now
		})
	}
}

// refuse takes a waiter out with a reason.
func (q *queue) refuse(w *waiter, r Reason, retryAfter time.Duration) {
	q.remove(w)
	w.flight.waits = q.waited(w)
	w.outcome, w.retryAfter = r, retryAfter
	q.wakeUp(w)
}

func (q *queue) wakeUp(w *waiter) {
	w.chain, q.wake = q.wake, w
}

// expire refuses those whose patience has ended, and reports whether there
// were any: those behind them may start now.
func (q *queue) expire(now time.Duration) (any bool) {
	for _, l := range q.lanes {
		for w := l.oldest; w != nil && w.expire <= now; w = l.oldest {
			q.refuse(w, WaitTimeout, 0)
			any = true
		}
	}
	return any
}

// sweep refuses waiters that match, after a change that decides their fate.
func (q *queue) sweep(fate func(*waiter) (Reason, time.Duration)) {
	for _, l := range q.lanes {
		for w := l.first; w != nil; {
			next := w.next
			if r, after := fate(w); r != "" {
				q.refuse(w, r, after)
			}
			w = next
		}
	}
}

// impossible reports why a call can never be admitted, or "".
func (q *queue) impossible(l *lane, weight int64, costs []int64) (Reason, int) {
	if most := q.capacity(l); weight > most {
		if q.permits == 0 {
			return Never, boundSemaphore
		}
		return TooLarge, boundSemaphore
	}
	for i := range q.limits {
		n := q.cost(costs, i)
		if c := q.limits[i].meter.Capacity(); n > c {
			if c == 0 {
				return Never, boundLimits + i
			}
			return TooLarge, boundLimits + i
		}
	}
	return "", noBound
}

// predict is a lower bound of the time at which a call that joins its lane now
// could start, and the bound that says so.
func (q *queue) predict(now time.Duration, l *lane, costs []int64, behind bool) (at time.Duration, bound int) {
	at, bound = now, noBound
	if t := q.pause.until; t > at { // a probe may end at any time
		at, bound = t, boundPause
	}
	if t := q.circuit.Ready(now); t > at {
		at, bound = t, boundBreaker
	}
	if t := q.auto.ready(now); t > at {
		at, bound = t, boundAuto
	}
	for i := range q.limits {
		n := q.cost(costs, i)
		if n == 0 {
			continue
		}
		ahead := int64(0)
		if behind {
			ahead = l.ahead[i]
		}
		if t := q.limits[i].meter.Backlog(now, ahead, n); t > at && t < meter.Later-1 {
			at, bound = t, boundLimits+i
		}
	}
	return at, bound
}

// waited splits a waiter's time in the queue by what blocked it. The result is
// part of the waiter.
func (q *queue) waited(w *waiter) *Waits {
	s := &w.waits
	*s = Waits{}
	var most time.Duration
	for i, total := range q.blocked {
		d := total
		if i < len(w.blocked) {
			d -= w.blocked[i]
		}
		switch i {
		case boundSemaphore:
			s.Semaphore = d
		case boundPause:
			s.Pause = d
		case boundBreaker:
			s.Breaker = d
		case boundStore:
			s.Store = d
		default:
			s.Limit += d
		}
		if d > most {
			most, s.Bound = d, q.boundName(i)
		}
	}
	return s
}

// boundName is how errors and statistics call a bound.
func (q *queue) boundName(b int) string {
	switch {
	case b == noBound:
		return ""
	case b < boundLimits:
		return boundNames[b]
	}
	return q.limits[b-boundLimits].bound()
}
