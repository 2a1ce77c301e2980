package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/internal/meter"
)

// flight is an attempt in flight, from its admission to its release, as the
// queue knows it. What a caller holds, a Permit or the context of an attempt,
// only refers to it: those are allocated for each attempt, and an allocation
// costs by the byte. The flights themselves are used again.
type flight struct {
	lane     *lane
	weight   int64
	costs    []int64 // by limit; nil is one request
	granted  time.Duration
	deadline time.Duration // of an attempt, since the gate's base; 0 is none
	waits    *Waits        // nil if it was granted at once
	ticket   breaker.Ticket
	paid     []payment     // by limit
	sample   *sample       // of an adaptive concurrency
	gap      time.Duration // by which its start kept the next one away
	lease    *lease        // of one that is watched
	timed    *timedAttempt
	whole    context.CancelFunc // ends the whole call with its last attempt
	next     *flight            // of the spare ones

	probe                         uint32 // number of the probe that it is after a pause; 0 is none
	wire, sent, settled, released bool
	tried                         bool // by Tries, which tells its outcome
	looks                         bool // at what its response shows of quotas
}

// payment is what an attempt paid to one limit.
type payment struct {
	meter  meter.Meter
	charge meter.Charge
}

// spareFlights is how many are kept for the next attempts. In flight there may
// be many more: a start mostly follows an end.
const spareFlights = 64

// board returns a flight for an attempt that asks for admission.
func (q *queue) board() *flight {
	f := q.spare
	if f == nil {
		return &flight{}
	}
	q.spare, f.next = f.next, nil
	q.spares--
	return f
}

// leave ends a flight that nobody refers to any more.
func (q *queue) leave(f *flight) {
	if q.spares < spareFlights {
		// What prepare and grant write anew stays.
		f.weight, f.costs, f.deadline, f.waits, f.sample, f.gap, f.lease, f.timed, f.whole = 0, nil, 0, nil, nil, 0, nil, nil, nil
		f.probe, f.sent, f.settled, f.released, f.tried = 0, false, false, false, false
		q.spare, f.next = f, q.spare
		q.spares++
	}
}

// clear reports whether what was paid stays as it is at the release.
func (f *flight) clear() bool { return f.sent || !f.wire }

// release ends a flight. A refund of a start that went to the wire is not
// possible: the provider has counted it.
func (q *queue) release(now time.Duration, f *flight, refund bool) {
	f.released = true
	q.forgo(f)
	if f.sample == nil {
		q.giveBack(f.lane, f.weight)
	} else {
		q.over(now, f)
	}
	q.pause.ended(f)
	if f.ticket != (breaker.Ticket{}) {
		q.circuit.End(now, f.ticket, breaker.Ignored)
		f.ticket = breaker.Ticket{}
	}
	q.payBack(now, f, refund)
}

// payBack ends what was paid: it stays paid, or comes back if asked for, or if
// nothing went to the wire.
func (q *queue) payBack(now time.Duration, f *flight, refund bool) {
	if f.wire {
		refund = !f.sent
	}
	paid := f.paid
	f.paid = paid[:0]
	if !refund {
		return
	}
	q.auto.refunded(f)
	for i := range paid {
		switch pay := &paid[i]; {
		case !f.settled:
			pay.meter.Settle(now, &pay.charge, 0)
		case f.wire:
			// Its true cost is known, so it was sent. Without a stamp it would
			// count as lying in every window for good.
			pay.meter.Sent(now, &pay.charge)
		}
	}
}

// keep ends an attempt whose permit is held for the next one.
func (q *queue) keep(now time.Duration, f *flight) {
	f.sample.done(now)
	q.pause.ended(f)
	q.payBack(now, f, false)
	f.gap, f.sent = 0, true // nothing starts under it any more
}

// handOver makes f the one that holds what the attempt before has kept.
func (q *queue) handOver(now time.Duration, kept, f *flight) {
	f.lane, f.weight = kept.lane, kept.weight
	kept.released = true
	q.forgo(kept)
	q.auto.sampled(now, f, q.inUse)
}

// forgo ends the watch on a permit.
func (q *queue) forgo(f *flight) {
	if f.lease != nil {
		q.leases.end(f.lease)
	}
}

// chargeOf is what was paid to a limit; nil is nothing.
func (f *flight) chargeOf(l *limit) *meter.Charge {
	for i := range f.paid {
		if f.paid[i].meter == l.meter && f.paid[i].charge.Units() > 0 {
			return &f.paid[i].charge
		}
	}
	return nil
}
