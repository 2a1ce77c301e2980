package mete

import (
	"maps"
	"runtime"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// Stats is a snapshot of a gate.
type Stats struct {
	Name string
	// At is when the snapshot was taken.
	At time.Time
	// Concurrency is the number of permits; 0 is no bound.
	Concurrency int
	// InUse is the weight of all permits held, Waiting the number of calls
	// that queue.
	InUse, Waiting int
	// Attempts is how many starts were admitted, Retries how many attempts
	// were followed by another, Replays how often a transport sent by itself
	// what it had sent before, Misuse how many permits were released twice,
	// Leaks how many were lost (found only with Config.FindLeaks).
	Attempts, Retries, Replays, Misuse, Leaks int64
	// Refused counts the calls that were refused, by reason.
	Refused map[Reason]int64
	// Blocked is for how long the head of the queue was blocked, by bound.
	Blocked map[string]time.Duration
	// Bound is what blocks the head of the queue now; empty if nothing waits.
	Bound string
	// Paused is how long the provider stays closed.
	Paused time.Duration
	// Rate is the share of the configured rate that is in force: below 1 after
	// a pause and after throttles inside the configured limit.
	Rate float64
	// Breaker is the state of the circuit breaker.
	Breaker breaker.State
	// Adaptive is what the limiter of an adaptive concurrency knows; nil
	// without one.
	Adaptive *adaptive.State
	// Limits are the quotas in force.
	Limits []LimitStats
	// Exhausted is why the provider is stopped, the text of the error of a
	// Terminal outcome; empty if it is not.
	Exhausted string
	// Learned are the quotas that responses have shown.
	Learned []LearnedQuota
	// Held is the time for which Ended permits were held, from grant to end.
	// Those that ended while nobody waited are sampled.
	Ended int64
	Held  time.Duration
	// Conn is the time from the grant to the wire of Sent starts (see
	// Call.Wire): the wait for a connection.
	Sent int64
	Conn time.Duration
	// Backoff is the time for which attempts of Do, Get and Tries stayed away
	// before they queued again.
	Backoff time.Duration
	// Oldest is for how long the oldest permit has been held, and OldestAt the
	// place where it was taken. They are known only with Config.FindLeaks.
	Oldest   time.Duration
	OldestAt string
	// CPU is the processor time that this process has used, all gates and all
	// else together, on Processors processors; 0 where it is not known.
	CPU        time.Duration
	Processors int
	// Ready is the time for which goroutines of this process could run and
	// waited for a processor, all of them together: an estimate from every
	// eighth wait, as the runtime takes it.
	Ready time.Duration

	age   time.Duration // of the gate
	start processor     // when the gate was made
}

// LimitStats is a snapshot of one limit.
type LimitStats struct {
	Limit
	// Bound is how errors and statistics call the limit.
	Bound string
	// Free is how many units could be taken if starts were not paced.
	Free int64
}

// Stats returns a snapshot. It takes the gate's lock and allocates.
func (g *Gate) Stats() Stats {
	use := readProcessor()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	q := &g.q
	q.book(now)
	q.pace(now)
	s := Stats{
		Name:        g.name,
		At:          time.Now(),
		Ended:       q.work.ended,
		Held:        q.work.held,
		Sent:        q.work.sent,
		Conn:        q.work.conn,
		Backoff:     q.work.backoff,
		CPU:         use.cpu,
		Processors:  runtime.GOMAXPROCS(0),
		Ready:       use.ready,
		age:         now,
		start:       g.start,
		Concurrency: g.permits(),
		InUse:       int(q.inUse),
		Waiting:     q.waiting,
		Attempts:    g.attempts,
		Retries:     g.retries,
		Replays:     g.replays,
		Misuse:      g.misuse,
		Leaks:       g.leaks,
		Refused:     maps.Clone(g.refused),
		Blocked:     map[string]time.Duration{},
		Bound:       q.boundName(q.bound),
		Breaker:     q.circuit.State(now),
		Paused:      max(q.pause.until-now, q.pause.stopped-now, 0),
		Rate:        q.pause.open(now) * q.pause.search.current(),
	}
	if q.pause.stopped > now && q.pause.why != nil {
		s.Exhausted = q.pause.why.Error()
	}
	s.Learned = q.learned.quotas(now)
	if q.auto != nil {
		state := q.auto.limiter.State()
		s.Adaptive = &state
	}
	if l := q.leases.oldest(); l != nil {
		s.Oldest, s.OldestAt = now-l.granted, l.caller()
	}
	for i, d := range q.blocked {
		if d > 0 {
			s.Blocked[q.boundName(i)] += d
		}
	}
	for i := range q.limits {
		if l := &q.limits[i]; !l.removed && !l.learned {
			s.Limits = append(s.Limits, LimitStats{Limit: l.Limit, Bound: l.bound(), Free: l.meter.Free(now)})
		}
	}
	return s
}

// Peek reports in how long the call could start at the earliest if it queued
// now: by the pause, the limits and those ahead of it in its lane. It does not
// know when permits in use come back. It takes nothing. The error is why the
// call never could start.
func (g *Gate) Peek(call Call) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var f flight
	if err := g.prepare(&f, &call, false); err != nil {
		return 0, err
	}
	now := g.now()
	if r, bound := g.q.impossible(f.lane, f.weight, f.costs); r != "" {
		return 0, &Rejected{Gate: g.name, Reason: r, Bound: g.q.boundName(bound)}
	}
	g.q.pace(now)
	at, _ := g.q.predict(now, f.lane, f.costs, true)
	return at - now, nil
}
