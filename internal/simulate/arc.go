package simulate

import (
	"math"
	"time"
)

// arc is Vector's adaptive request concurrency: once per mean round trip one
// more, if the limit was reached and calls were no slower than usual, or a
// tenth less, after a failure or when they were slower by 2.5 deviations.
type arc struct {
	l       int
	next    time.Duration
	calls   int
	sum     float64
	dropped bool
	reached bool

	known          bool
	mean, variance float64
}

func newARC(s Setting) rule { return &arc{l: s.initial()} }

func (a *arc) limit() int { return a.l }

func (a *arc) sample(s sample) {
	a.reached = a.reached || s.inFlight >= a.l
	if s.dropped {
		a.dropped = true
	} else {
		a.calls++
		a.sum += s.latency.Seconds()
	}
	if s.now < a.next || a.calls == 0 {
		return
	}
	now := a.sum / float64(a.calls)
	switch {
	case !a.known:
	case a.reached && !a.dropped && now <= a.mean:
		a.l = min(maxLimit, a.l+1)
	case a.dropped || now >= a.mean+2.5*math.Sqrt(a.variance):
		a.l = max(minLimit, int(float64(a.l)*0.9))
	}
	a.learn(now)
	a.calls, a.sum, a.dropped, a.reached = 0, 0, false, false
	a.next = s.now + seconds(a.mean)
}

// learn is an exponentially weighted mean with its variance.
func (a *arc) learn(v float64) {
	const weight = 0.4
	if !a.known {
		a.mean, a.known = v, true
		return
	}
	d := v - a.mean
	a.mean += weight * d
	a.variance = (1 - weight) * (a.variance + weight*d*d)
}
