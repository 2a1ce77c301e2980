package mete

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// Call is what one call asks of a gate. The zero value is one permit and one
// request in the default lane.
type Call struct {
	// Lane is the name of the lane to queue in; empty is the first lane.
	Lane string
	// Weight is how many permits the call holds; 0 means 1.
	Weight int
	// Costs is what the call pays by unit, as in {"tokens": 812}. Nil means 1
	// of Requests; a unit that is not named costs nothing, Requests costs 1.
	Costs map[string]int64
	// Wire says that the start is stamped by Permit.Sent, when the request goes
	// to the wire, and not at the grant. Until then the call counts as lying in
	// every window.
	Wire bool
	// Patient says that the call waits as long as its context lets it,
	// whatever MaxWait says. Package batch does so.
	Patient bool
	// MaxPause is the longest pause of the provider, and of a calendar limit
	// that is used up, that the call sits out, Patient or not: a longer one
	// refuses it at once with ErrPaused or ErrBudget. 0 is no bound beside
	// MaxWait. It is for a call that could be made elsewhere.
	MaxPause time.Duration
}

// Waits is how long a call waited, by what it waited for. The parts of the
// queue do not overlap and add up to Queue.
type Waits struct {
	Semaphore, Limit, Pause, Breaker, Store time.Duration
	// Bound is what most of the time in the queue was spent on.
	Bound string
}

// Queue is the whole time from asking to the grant.
func (w Waits) Queue() time.Duration {
	return w.Semaphore + w.Limit + w.Pause + w.Breaker + w.Store
}

// add joins the waits of two attempts of one call; Bound is the later one's
// unless the earlier one waited longer.
func (w Waits) add(v Waits) Waits {
	if w.Queue() > v.Queue() || v.Bound == "" {
		v.Bound = w.Bound
	}
	v.Semaphore += w.Semaphore
	v.Limit += w.Limit
	v.Pause += w.Pause
	v.Breaker += w.Breaker
	v.Store += w.Store
	return v
}

// Permit is what an admitted call holds: permits of the gate, and receipts for
// what it paid. It is released exactly once, by Release or Cancel; later calls
// do nothing and are counted as misuse. A nil Permit releases nothing.
type Permit struct {
	gate    *Gate
	lane    *lane
	weight  int64
	granted time.Duration
	waits   *Waits // nil if it was granted at once
	ticket  breaker.Ticket
	attempt *attempt // its context, to be ended with it; may be nil
	extra   *extra   // nil for most
	paid    []payment
	some    [1]payment

	wire, sent, settled, released bool
	looks                         bool // at what its response shows of quotas
}

// extra is what few permits have. A permit is allocated for each attempt, so
// its size is felt.
type extra struct {
	costs  []int64            // by limit; nil is one request
	lease  *lease             // of one that is watched
	whole  context.CancelFunc // ends the whole call with its last attempt
	sample *sample            // of an adaptive concurrency
}

// add gives the permit its extra, if it has none.
func (p *Permit) add() *extra {
	if p.extra == nil {
		p.extra = &extra{}
	}
	return p.extra
}

func (p *Permit) sample() *sample {
	if p.extra == nil {
		return nil
	}
	return p.extra.sample
}

func (p *Permit) costs() []int64 {
	if p.extra == nil {
		return nil
	}
	return p.extra.costs
}

// Waits reports how long the call queued for this permit, and for what.
func (p *Permit) Waits() Waits {
	if p.waits == nil {
		return Waits{}
	}
	return *p.waits
}

// Sent stamps the start of a Call with Wire set: the request goes to the wire
// now. Only the first call counts. It takes the gate's lock.
func (p *Permit) Sent() {
	if p == nil || !p.wire {
		return
	}
	g := p.gate
	g.mu.Lock()
	if p.sent || p.released {
		g.mu.Unlock()
		return
	}
	p.sent = true
	now := g.now()
	g.q.work.sent++
	g.q.work.conn += now - p.granted
	p.sample().start(now, g.q.inUse)
	for i := range p.paid {
		p.paid[i].meter.Sent(now, &p.paid[i].charge)
	}
	g.stepAndUnlock(now)
}

// Settle replaces the estimated costs by the true ones, by unit. What was
// charged too much returns to the instant of the charge, what was charged too
// little is charged now, as debt if need be. Units that are not named keep
// their estimate. Only the first call counts.
func (p *Permit) Settle(actual map[string]int64) {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	if p.settled || p.released {
		g.mu.Unlock()
		return
	}
	p.settled = true
	now := g.now()
	g.q.book(now)
	for i := range p.paid {
		if n, ok := actual[g.q.limits[i].unit()]; ok {
			p.paid[i].meter.Settle(now, &p.paid[i].charge, max(n, 0))
		}
	}
	g.stepAndUnlock(now)
}

// Release gives the permit back. What it paid stays paid, unless its Call had
// Wire set and nothing was sent. A permit of Acquire or TryAcquire counts as
// answered by the provider, which matters after a pause; that of Tries counts
// as what Again was told.
func (p *Permit) Release() { p.end(false) }

// Cancel gives the permit back and everything it paid with it. It is for a
// call of which nothing was sent.
func (p *Permit) Cancel() { p.end(true) }

func (p *Permit) end(refund bool) {
	if p == nil || p.gate == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	if p.released {
		g.misuse++
		g.mu.Unlock()
		return
	}
	now := g.last
	answered := p.attempt == nil && !refund && p.clear()
	if refund || !p.clear() || !g.quiet() || answered && !g.calm() || g.sampled() {
		now = g.now()
		g.q.work.end(now-p.granted, refund)
	}
	g.q.book(now)
	if answered {
		p.sample().told(adaptive.Success)
		g.q.answered(now, p)
		g.q.ended(now, p, breaker.Success)
	}
	g.q.release(now, p, refund)
	g.stepAndUnlock(now)
	if p.attempt != nil {
		p.attempt.finish()
		if p.extra != nil && p.extra.whole != nil {
			p.extra.whole()
		}
	}
}

// Replay is for a transport that is about to send again, by itself, what the
// permit was granted for. It blocks until every limit admits the repetition or
// ctx ends, and is refused at once if ctx will end before. The permit is kept
// meanwhile; what was paid before stays paid. Where the gate was closed or a
// limit lowered below the cost meanwhile, the permit is still good: the
// repetition is charged and does not wait.
func (p *Permit) Replay(ctx context.Context) error {
	g := p.gate
	again := &Permit{lane: g.holders(), extra: &extra{costs: p.costs()}}
	g.mu.Lock()
	g.q.pause.ended(p) // a probe that was lost is tried again
	g.q.circuit.End(g.now(), p.ticket, breaker.Ignored)
	p.ticket = breaker.Ticket{}
	g.mu.Unlock()
	err := g.admit(ctx, &Call{Wire: p.wire}, again, &Tries{gate: g})
	late := errors.Is(err, ErrDraining) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNever)
	if err != nil && !late {
		return err
	}
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	if late {
		g.q.grant(now, again)
		g.started(again, true)
	}
	if p.released {
		// The caller has gone meanwhile; nothing will be sent.
		g.q.release(now, again, true)
		g.stepAndUnlock(now)
		return context.Cause(ctx)
	}
	if g.q.pause.probe == again {
		g.q.pause.probe = p
	}
	p.paid, p.sent, p.granted = append(p.paid[:0:0], again.paid...), false, again.granted
	p.ticket = again.ticket
	g.replays++
	g.stepAndUnlock(now)
	return nil
}

// clear reports whether what the permit paid stays as it is at its release.
func (p *Permit) clear() bool { return p.sent || !p.wire }

// release ends a permit. A refund of a start that went to the wire is not
// possible: the provider has counted it.
func (q *queue) release(now time.Duration, p *Permit, refund bool) {
	p.released = true
	q.forgo(p)
	q.over(now, p)
	q.pause.ended(p)
	q.circuit.End(now, p.ticket, breaker.Ignored)
	p.ticket = breaker.Ticket{}
	q.payBack(now, p, refund)
}

// payBack ends what the permit paid: it stays paid, or comes back if asked for,
// or if nothing went to the wire.
func (q *queue) payBack(now time.Duration, p *Permit, refund bool) {
	if p.wire {
		refund = !p.sent
	}
	for i := range p.paid {
		switch pay := &p.paid[i]; {
		case refund && !p.settled:
			pay.meter.Settle(now, &pay.charge, 0)
		case refund && p.wire:
			// Its true cost is known, so it was sent. Without a stamp it would
			// count as lying in every window for good.
			pay.meter.Sent(now, &pay.charge)
		}
	}
	p.paid = nil
}

// keep ends the attempt of a permit that is held for the next one.
func (q *queue) keep(now time.Duration, p *Permit) {
	p.sample().done(now)
	q.pause.ended(p)
	q.payBack(now, p, false)
	p.sent = true // nothing starts under it any more
}

// handOver makes p the permit that the attempt before has kept.
func (q *queue) handOver(now time.Duration, kept, p *Permit) {
	p.lane, p.weight = kept.lane, kept.weight
	kept.released = true
	q.forgo(kept)
	q.auto.sampled(now, p, q.inUse)
}

// forgo ends the watch on a permit.
func (q *queue) forgo(p *Permit) {
	if p.extra != nil && p.extra.lease != nil {
		q.leases.end(p.extra.lease)
	}
}

// held is the key under which a context carries a permit of a gate.
type held struct{ gate *Gate }

type permitKey struct{}

// PermitFrom returns the permit of the attempt that ctx belongs to, or nil.
func PermitFrom(ctx context.Context) *Permit {
	p, _ := ctx.Value(permitKey{}).(*Permit)
	return p
}

// Context returns a context that carries the permit, so that a nested use of
// the gate is found out. Do and Get do this by themselves.
func (p *Permit) Context(ctx context.Context) context.Context {
	return &carrier{ctx, p}
}

// Gate is the gate that granted the permit.
func (p *Permit) Gate() *Gate { return p.gate }
