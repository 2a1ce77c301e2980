package mete

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Acquire waits until the call may start and returns what it holds. It blocks
// until the grant, the end of ctx, or MaxWait; a call that cannot be admitted
// in time is refused at once. The error is a *Rejected, ErrNested or
// ErrInvalidCall, and nothing was charged.
func (g *Gate) Acquire(ctx context.Context, call Call) (*Permit, error) {
	p := &Permit{gate: g}
	if err := g.admit(ctx, &call, p, nil); err != nil {
		return nil, err
	}
	g.admitted(p, 1)
	return p, nil
}

// TryAcquire admits the call if it may start now. It never blocks.
func (g *Gate) TryAcquire(call Call) (*Permit, bool) {
	p, ok := g.try(call, math.MaxInt64)
	if ok {
		g.admitted(p, 1)
	}
	return p, ok
}

// admitted does what is asked for at each admission, the lock being free.
func (g *Gate) admitted(p *Permit, attempt int) {
	if cfg := g.cfg.Load(); cfg.FindLeaks || cfg.Observer != nil {
		g.watched(p, attempt, cfg.FindLeaks)
	}
}

func (g *Gate) watched(p *Permit, attempt int, leaks bool) {
	if leaks {
		p.watch()
	}
	g.observeAdmission(p, attempt)
}

// try is TryAcquire for a call that came at born: those that wait count only
// if they are older.
func (g *Gate) try(call Call, born time.Duration) (*Permit, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := &g.q
	f := q.board()
	if g.prepare(f, &call, false) == nil && !q.closed && (q.waiting == 0 || q.head().born > born) {
		now := g.now()
		q.pace(now)
		if r, _ := q.impossible(f.lane, f.weight, f.costs); r == "" {
			bound, _ := q.check(now, f.lane, f.weight, f.costs)
			if bound == noBound {
				q.grant(now, f)
				g.started(f, false)
				return &Permit{g, f}, true
			}
			q.auto.blocked(now, bound)
		}
	}
	q.leave(f)
	return nil, false
}

// prepare fills in what the call asks for. A holder has its permits already.
func (g *Gate) prepare(f *flight, call *Call, holder bool) error {
	q := &g.q
	if call.Weight < 0 {
		return fmt.Errorf("%w: gate %s: weight %d", ErrInvalidCall, g.name, call.Weight)
	}
	f.wire = call.Wire
	if f.lane = q.holders(); !holder {
		f.lane, f.weight = q.lanes[0], max(int64(call.Weight), 1)
		if call.Lane != "" {
			f.lane = nil
			for _, l := range q.lanes {
				if l.Name == call.Lane && !l.holders && !l.gone {
					f.lane = l
				}
			}
			if f.lane == nil {
				return fmt.Errorf("%w: gate %s has no lane %q", ErrInvalidCall, g.name, call.Lane)
			}
		}
	}
	if call.Costs != nil {
		for unit, n := range call.Costs {
			if n < 0 {
				return fmt.Errorf("%w: gate %s: %d %s", ErrInvalidCall, g.name, n, unit)
			}
		}
		f.costs = q.costs(call.Costs)
	}
	return nil
}

// costs turns costs by unit into costs by limit.
func (q *queue) costs(named map[string]int64) []int64 {
	list := make([]int64, len(q.limits))
	for i := range q.limits {
		unit := q.limits[i].unit()
		n, ok := named[unit]
		if !ok && unit == Requests {
			n = 1
		}
		list[i] = n
	}
	return list
}

// started books an attempt that was granted, whose time runs from now on. The
// caller holds the lock.
func (g *Gate) started(f *flight, again bool) {
	if d := g.cfg.Load().Timeout; d > 0 {
		f.deadline = f.granted - g.shift + d
	}
	g.attempts++
	if !again {
		g.budget.First()
	}
	if g.keep != nil {
		g.keep.touch()
	}
}

// admit waits for the grant of p. again is set for a repeated attempt, and has
// kept its permit where it holds one already.
func (g *Gate) admit(ctx context.Context, call *Call, p *Permit, again *Tries) error {
	if err := ctx.Err(); err != nil {
		return g.reject(&Rejected{Reason: ended(err), Last: err}, again)
	}
	holder := again != nil && again.kept != nil
	if _, nested := ctx.Value(held{g}).(*Permit); nested && !holder {
		return fmt.Errorf("%w (gate %s)", ErrNested, g.name)
	}
	g.mu.Lock()
	q := &g.q
	f := q.board()
	if err := g.prepare(f, call, holder); err != nil {
		q.leave(f)
		g.mu.Unlock()
		return err
	}
	if holder && f.costs == nil {
		f.costs = again.kept.costs()
	}
	now := g.now()
	q.book(now)
	q.pace(now)
	if !q.closed && (q.waiting == 0 || holder) {
		if bound, _ := q.check(now, f.lane, f.weight, f.costs); bound == noBound {
			q.grant(now, f)
			g.started(f, again != nil)
			p.flight = f
			g.mu.Unlock()
			return nil
		}
	}
	return g.wait(ctx, now, call, p, f, again)
}

// wait queues for the grant of p, which cannot be now. It releases the lock.
func (g *Gate) wait(ctx context.Context, now time.Duration, call *Call, p *Permit, f *flight, again *Tries) error {
	q := &g.q
	if q.closed {
		return g.rejectAndUnlock(f, Draining, noBound, 0, again)
	}
	if r, bound := q.impossible(f.lane, f.weight, f.costs); r != "" {
		return g.rejectAndUnlock(f, r, bound, 0, again)
	}
	w := &waiter{lane: f.lane, weight: f.weight, costs: f.costs, named: call.Costs, flight: f, born: now, again: again != nil, patient: call.Patient, maxPause: call.MaxPause, ready: make(chan struct{}, 1)}
	if again != nil {
		w.born = again.born
	}
	if r, bound, after := g.foresee(ctx, now, w, call.Patient, again != nil); r != "" {
		return g.rejectAndUnlock(f, r, bound, after, again)
	}
	w.blocked = append(make([]time.Duration, 0, len(q.blocked)), q.blocked...)
	q.enqueue(w, again != nil)
	p.flight = f
	g.stepAndUnlock(now)

	select {
	case <-w.ready:
		if w.outcome == "" && ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	return g.giveUp(w, ctx.Err(), again)
}

// giveUp ends a waiter that was refused or whose context has ended. Where a
// grant and the end of the context come together, the context decides: a call
// whose caller has gone does not start, and what it was granted goes back.
func (g *Gate) giveUp(w *waiter, err error, again *Tries) error {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	r := w.outcome
	switch {
	case w.queued:
		g.q.remove(w)
		w.flight.waits = g.q.waited(w)
		r = ended(err)
	case r == "":
		g.attempts--
		g.q.release(now, w.flight, true)
		r = ended(err)
	case r == Exhausted:
		err = g.q.pause.why
	default:
		err = nil
	}
	w.flight.released = true // the context of an attempt may refer to it
	waits := *w.flight.waits
	e := &Rejected{Reason: r, Bound: waits.Bound, Waited: waits.Queue(), RetryAfter: w.retryAfter, Last: err}
	g.figures(e)
	g.refused[r]++
	g.stepAndUnlock(now)
	return g.reject(e, again)
}

func ended(err error) Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return Deadline
	}
	return Canceled
}

// late is the reason of a call that the bound lets start too late: a calendar
// limit is a budget, and what keeps a call back is that it is used up.
func (q *queue) late(otherwise Reason, bound int) Reason {
	if bound >= boundLimits && q.limits[bound-boundLimits].Calendar != "" {
		return Budget
	}
	return otherwise
}

// foresee refuses a call that would wait in vain.
func (g *Gate) foresee(ctx context.Context, now time.Duration, w *waiter, patient, retry bool) (Reason, int, time.Duration) {
	q := &g.q
	if at := q.pause.stopped; at > now {
		return Exhausted, boundPause, at - now
	}
	maxQueue, patience := g.cfg.Load().MaxQueue, g.cfg.Load().maxWait()
	if w.lane.MaxQueue > 0 {
		maxQueue = w.lane.MaxQueue
	}
	if w.lane.MaxWait > 0 {
		patience = w.lane.MaxWait
	}
	if waiting := q.waiting; maxQueue > 0 && !w.lane.holders {
		if w.lane.MaxQueue > 0 {
			waiting = w.lane.waiting
		}
		if waiting >= maxQueue {
			return QueueFull, q.bound, 0
		}
	}
	if at := q.circuit.Ready(now); at > now && !patient {
		return Breaker, boundBreaker, at - now
	}
	at, bound := q.predict(now, w.lane, w.costs, !retry)
	if deadline, ok := ctx.Deadline(); ok {
		w.deadline = max(g.at(deadline), 1)
		if at >= w.deadline {
			return q.late(Deadline, bound), bound, at - now
		}
	}
	if end := q.pause.until; w.maxPause > 0 && end-q.pause.jitter > now+w.maxPause {
		return Paused, boundPause, end - now
	}
	if q.spent(now, w, bound, at) {
		return Budget, bound, at - now
	}
	if patience > 0 && !patient && !w.lane.holders {
		w.expire = now + patience
		if end := q.pause.until; end > now {
			if end-q.pause.jitter > w.expire {
				return Paused, boundPause, end - now
			}
			w.expire = end + patience
		}
		if at > w.expire {
			return q.late(WaitTimeout, bound), bound, at - now
		}
	}
	return "", noBound, 0
}

func (g *Gate) rejectAndUnlock(f *flight, r Reason, bound int, after time.Duration, again *Tries) error {
	e := &Rejected{Reason: r, Bound: g.q.boundName(bound), RetryAfter: after}
	g.figures(e)
	if r == Exhausted {
		e.Last = g.q.pause.why
	}
	g.refused[r]++
	g.q.leave(f)
	g.mu.Unlock()
	return g.reject(e, again)
}

func (g *Gate) figures(e *Rejected) {
	e.Concurrency, e.InUse, e.Waiting = g.permits(), int(g.q.inUse), g.q.waiting
}

func (g *Gate) reject(e *Rejected, again *Tries) error {
	e.Gate = g.name
	if again != nil {
		e.Attempts = again.n
		switch {
		case e.Last == nil:
			e.Last = again.last
		case again.last != nil:
			e.Last = fmt.Errorf("%w, after %w", e.Last, again.last)
		}
	}
	g.observeRefusal(e)
	return e
}
