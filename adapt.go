package mete

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/metehq/mete/adaptive"
)

// auto is a number of permits that is found while they are used: see package
// adaptive. Like the queue it is plain data under the gate's lock.
type auto struct {
	cfg     adaptive.Config
	limiter *adaptive.Limiter
	kept    []keptBack    // permits of calls that failed early, the soonest first
	due     time.Duration // when the next call may start by the limiter's rate
	next    time.Duration // when the limiter wants to be stepped; 0 is never
}

// keptBack is a permit that comes back later than its call.
type keptBack struct {
	until  time.Duration
	weight int64
	lane   *lane
}

// sample is what a permit teaches. It keeps its limiter: after an Update the
// next calls may have another one.
type sample struct {
	limiter *adaptive.Limiter
	ticket  adaptive.Ticket
	started bool
	outcome adaptive.Outcome
}

// configureAuto puts another way to find the number of permits in force; nil
// is none. The number itself goes on from where it was.
func (q *queue) configureAuto(now time.Duration, cfg *adaptive.Config) {
	old := q.auto
	switch {
	case cfg == nil:
		q.auto = nil
	case old != nil && old.cfg == *cfg:
		return
	default:
		c := *cfg
		if old != nil {
			least, most := c.Bounds()
			c.Initial = min(max(old.limiter.Limit(), least), most)
		}
		if c.Seed == 0 {
			c.Seed = rand.Uint64()
		}
		// Drains of several processes fall together by the clock on the wall.
		wall := time.Since(time.Unix(0, 0)) - now
		q.auto = &auto{cfg: *cfg, limiter: adaptive.New(c, wall)}
	}
	if old != nil {
		for _, k := range old.kept {
			q.giveBack(k.lane, k.weight)
		}
	}
	q.adapt(now)
}

// giveBack makes permits free.
func (q *queue) giveBack(l *lane, weight int64) {
	q.inUse -= weight
	l.used -= weight
}

// adapt lets the limiter have its time: the number of permits is what it says,
// and permits that were kept back come free.
func (q *queue) adapt(now time.Duration) {
	a := q.auto
	if a == nil {
		return
	}
	a.next = a.limiter.Step(now)
	free := 0
	for ; free < len(a.kept) && a.kept[free].until <= now; free++ {
		q.giveBack(a.kept[free].lane, a.kept[free].weight)
	}
	a.kept = slices.Delete(a.kept, 0, free)
	q.permits = int64(a.limiter.Limit())
}

// mostPermits is how many permits there can ever be.
func (q *queue) mostPermits() int64 {
	if q.auto == nil {
		return q.permits
	}
	_, most := q.auto.cfg.Bounds()
	return int64(most)
}

// ready is when the limiter's rate lets the next call start.
func (a *auto) ready(now time.Duration) time.Duration {
	if a == nil || a.limiter.Rate() <= 0 {
		return now
	}
	return a.due
}

// again is when the queue has to be stepped for the limiter's sake.
func (a *auto) again(again time.Duration) time.Duration {
	if a == nil {
		return again
	}
	if len(a.kept) > 0 {
		again = min(again, a.kept[0].until)
	}
	if a.next > 0 {
		again = min(again, a.next)
	}
	return again
}

// blocked tells that a call found no free permit.
func (a *auto) blocked(now time.Duration, bound int) {
	if a != nil && bound == boundSemaphore {
		a.limiter.Blocked(now)
	}
}

// granted keeps the next start away by the limiter's rate.
func (a *auto) granted(now time.Duration, f *flight, inUse int64) {
	if rate := a.limiter.Rate(); rate > 0 {
		f.gap = time.Duration(float64(time.Second) / rate)
		a.due = max(a.due, now-f.gap) + f.gap
	}
	if f.weight > 0 { // not a repetition under a permit that is held
		a.sampled(now, f, inUse)
	}
}

// refunded gives the start that was kept away for a grant to the next one.
func (a *auto) refunded(f *flight) {
	if a != nil {
		a.due -= f.gap
	}
}

// sampled begins the sample of an attempt, at the wire if it is stamped there.
func (a *auto) sampled(now time.Duration, f *flight, inUse int64) {
	if a == nil {
		return
	}
	f.sample = &sample{limiter: a.limiter}
	if !f.wire {
		f.sample.start(now, inUse)
	}
}

func (s *sample) start(now time.Duration, inUse int64) {
	if s != nil && !s.started {
		s.started = true
		s.ticket = s.limiter.Start(now, int(inUse))
	}
}

// told remembers how the call fared, for its end.
func (s *sample) told(o adaptive.Outcome) {
	if s != nil {
		s.outcome = o
	}
}

// done ends the sample and reports when its permits are to be free.
func (s *sample) done(now time.Duration) time.Duration {
	if s == nil || !s.started {
		return now
	}
	s.started = false
	return s.limiter.Done(now, s.ticket, s.outcome)
}

// over ends the sample of an attempt that is released, and frees its permits: at
// once, or later for a call that failed sooner than calls succeed.
func (q *queue) over(now time.Duration, f *flight) {
	free := f.sample.done(now)
	if free <= now || q.auto == nil {
		q.giveBack(f.lane, f.weight)
		return
	}
	kept := keptBack{free, f.weight, f.lane}
	at, _ := slices.BinarySearchFunc(q.auto.kept, free, func(k keptBack, until time.Duration) int {
		return int(max(min(k.until-until, 1), -1))
	})
	q.auto.kept = slices.Insert(q.auto.kept, at, kept)
}

// fate is what an outcome says about the number of calls in flight.
func fate(o *Outcome, ended bool) adaptive.Outcome {
	switch {
	case o.Throttled:
		return adaptive.Throttled
	case o.Err == nil:
		return adaptive.Success
	case o.Answered, ended, refusal(o.Err):
		return adaptive.Ignored
	}
	return adaptive.Failed
}
