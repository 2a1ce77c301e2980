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
	gate   *Gate
	flight *flight // of a permit that is used up: nil, or what it waited
}

// live is what the permit stands for; nil once it was given back. The caller
// holds the lock.
func (p *Permit) live() *flight {
	if p.flight == nil || p.flight.released {
		return nil
	}
	return p.flight
}

// costs are what its attempt pays, and pays again if it is repeated under it. The
// caller holds the lock.
func (p *Permit) costs() []int64 {
	if f := p.live(); f != nil {
		return f.costs
	}
	return nil
}

// drop ends the permit of a flight that was released. One that waited can
// still be asked for how long. The caller holds the lock.
func (p *Permit) drop() {
	if f := p.flight; f.waits == nil {
		p.flight = nil
		p.gate.q.leave(f)
	}
}

// Waits reports how long the call queued for this permit, and for what. It
// takes the gate's lock.
func (p *Permit) Waits() Waits {
	if p.gate == nil {
		return Waits{}
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.flight == nil || p.flight.waits == nil {
		return Waits{}
	}
	return *p.flight.waits
}

// Sent stamps the start of a Call with Wire set: the request goes to the wire
// now. Only the first call counts. It takes the gate's lock.
func (p *Permit) Sent() {
	if p == nil || p.gate == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	f := p.live()
	if f == nil || f.clear() {
		g.mu.Unlock()
		return
	}
	f.sent = true
	now := g.now()
	g.q.work.sent++
	g.q.work.conn += now - f.granted
	f.sample.start(now, g.q.inUse)
	for i := range f.paid {
		f.paid[i].meter.Sent(now, &f.paid[i].charge)
	}
	g.stepAndUnlock(now)
}

// Settle replaces the estimated costs by the true ones, by unit. What was
// charged too much returns to the instant of the charge, what was charged too
// little is charged now, as debt if need be. Units that are not named keep
// their estimate. Only the first call counts.
func (p *Permit) Settle(actual map[string]int64) {
	if p == nil || p.gate == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	f := p.live()
	if f == nil || f.settled {
		g.mu.Unlock()
		return
	}
	f.settled = true
	now := g.now()
	g.q.book(now)
	for i := range f.paid {
		if n, ok := actual[g.q.limits[i].unit()]; ok {
			f.paid[i].meter.Settle(now, &f.paid[i].charge, max(n, 0))
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
	f := p.live()
	if f == nil {
		g.misuse++
		g.mu.Unlock()
		return
	}
	now := g.last
	answered := !f.tried && !refund && f.clear()
	if refund || !f.clear() || !g.quiet() || answered && !g.calm() || g.sampled() {
		now = g.now()
		g.q.work.end(now-f.granted, refund)
	} else {
		g.unread++
	}
	g.q.book(now)
	if answered {
		f.sample.told(adaptive.Success)
		g.q.answered(now, f)
		g.q.ended(now, f, breaker.Success)
	}
	g.q.release(now, f, refund)
	timed, whole := f.timed, f.whole
	p.drop()
	g.stepAndUnlock(now)
	if timed != nil {
		timed.finish()
	}
	if whole != nil {
		whole()
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
	g.mu.Lock()
	f := p.live()
	if f == nil {
		g.mu.Unlock()
		return context.Cause(ctx)
	}
	g.q.pause.ended(f) // a probe that was lost is tried again
	g.q.circuit.End(g.now(), f.ticket, breaker.Ignored)
	f.ticket = breaker.Ticket{}
	wire := f.wire
	g.mu.Unlock()
	again := Permit{gate: g}
	err := g.admit(ctx, &Call{Wire: wire}, &again, &Tries{gate: g, kept: p})
	late := errors.Is(err, ErrDraining) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNever)
	if err != nil && !late {
		return err
	}
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	if late {
		again.flight = g.q.board()
		again.flight.lane, again.flight.wire, again.flight.costs = g.q.holders(), wire, p.costs()
		g.q.grant(now, again.flight)
		g.started(again.flight, true)
	}
	defer g.stepAndUnlock(now)
	a := again.flight
	if f = p.live(); f == nil {
		// The caller has gone meanwhile; nothing will be sent.
		g.q.release(now, a, true)
		return context.Cause(ctx)
	}
	f.paid, a.paid = a.paid, f.paid
	if f.lease != nil {
		f.lease.paid = f.paid
	}
	f.sent, f.granted, f.gap, f.ticket, f.probe = false, a.granted, a.gap, a.ticket, a.probe
	f.looks = f.looks || a.looks
	a.released = true
	g.replays++
	return nil
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
