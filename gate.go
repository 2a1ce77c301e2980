// Package mete decides for every call to a remote API whether it may start
// now: exactly at the limits of its provider, never above them and hardly
// below.
//
// A [Gate] holds everything about one provider: how many calls may be in
// flight (Concurrency), how many may start per unit of time (Limits), how long
// the provider asked to stay away (a pause), and how failures are repeated
// (Retry). A call queues once and is admitted in one decision: a permit, and
// every limit's tokens, and no pause. So no permit sleeps while its holder
// waits for a token, and no token is spent on a call that waits for a permit.
//
//	geo, err := mete.New(mete.Config{
//		Name:        "geocoder",
//		Concurrency: 20,
//		Limits:      []mete.Limit{mete.Per(50, time.Second)},
//		Retry:       mete.Retry{Attempts: 4},
//	})
//	place, err := mete.Get(ctx, geo, mete.Call{}, lookup)
//
// Whatever blocks the head of the queue is the binding bound, and the time is
// booked on it: "semaphore", "pause" or "limit:<name>". [Gate.Stats] tells
// them apart.
//
// Package metehttp does the same for an http.Client, package batch for a
// stream of work. Packages semaphore and rate are complete on their own.
package mete

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/internal/meter"
	"github.com/metehq/mete/retry"
)

// Gate admits the calls to one provider. It is created once and shared by all
// that call the provider. Its methods may be called at any time from any
// goroutine; it has no goroutine of its own.
type Gate struct {
	name string

	mu       sync.Mutex
	cfg      atomic.Pointer[Config] // replaced as a whole, under the lock
	q        queue
	base     time.Time     // time is measured from here, by the monotonic clock
	last     time.Duration // now, when it was last asked for
	timer    *time.Timer
	due      time.Duration // when timer fires
	budget   retry.Budget
	attempts int64
	retries  int64
	replays  int64
	misuse   int64
	leaks    int64
	lost     []*lease // leaked, not taken back yet
	refused  map[Reason]int64
	keep     *keeper // durable state; nil without
}

// New returns a gate for the provider that cfg describes. Its limits are clear
// unless cfg.State holds what was consumed before. The error is a mistake in
// cfg or a State folder that cannot be used.
func New(cfg Config) (*Gate, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gate{name: cfg.Name, base: time.Now(), refused: map[Reason]int64{}}
	g.q.bound = noBound
	g.q.blocked = make([]time.Duration, boundLimits)
	g.configure(0, cfg)
	if cfg.State != "" {
		keep, err := openKeeper(cfg.State, g)
		if err != nil {
			return nil, err
		}
		g.keep = keep
	}
	return g, nil
}

// Stamped reports whether starts count from the moment they go to the wire, so
// that Call.Wire and Permit.Sent are worth their cost: there is a limit.
func (g *Gate) Stamped() bool { return len(g.cfg.Load().Limits) > 0 }

// Name is the provider's name.
func (g *Gate) Name() string { return g.name }

// now is the time since the gate was made. The caller holds the lock. A clock
// that runs backwards (a gate that is taken into a synctest bubble) goes on
// from where it was, so that everything in force stays so.
func (g *Gate) now() time.Duration {
	now := time.Since(g.base)
	if now < g.last {
		if g.last-now > time.Second {
			g.base = g.base.Add(now - g.last)
		}
		now = g.last
	}
	if g.lost != nil {
		g.reclaim()
	}
	g.last = now
	return now
}

// predecessor is the limit whose history a limit of a new configuration goes
// on with: the one of its name. One without a name goes on with another of its
// unit that has none either and is no longer there, if it can the one with the
// same period.
func (q *queue) predecessor(spec Limit, limits []Limit, inForce []bool) (found *limit) {
	for i := range inForce {
		l := &q.limits[i]
		if !inForce[i] || !l.removed || l.unit() != spec.unit() || !sameModel(l.Limit, spec) {
			continue
		}
		if l.bound() == spec.bound() {
			return l
		}
		stays := slices.ContainsFunc(limits, func(o Limit) bool { return o.bound() == l.bound() && o.unit() == l.unit() })
		if l.Name == "" && spec.Name == "" && !stays && (found == nil || l.Per == spec.Per) {
			found = l
		}
	}
	return found
}

// Acquire waits until the call may start and returns what it holds. It blocks
// until the grant, the end of ctx, or MaxWait; a call that cannot be admitted
// in time is refused at once. The error is a *Rejected, ErrNested or
// ErrInvalidCall, and nothing was charged.
func (g *Gate) Acquire(ctx context.Context, call Call) (*Permit, error) {
	p := &Permit{}
	if err := g.admit(ctx, call, p, nil); err != nil {
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
		if cfg.FindLeaks {
			p.watch()
		}
		g.observeAdmission(p, attempt)
	}
}

// try is TryAcquire for a call that came at born: those that wait count only
// if they are older.
func (g *Gate) try(call Call, born time.Duration) (*Permit, bool) {
	p := &Permit{}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.prepare(p, call) != nil || g.q.closed || (g.q.waiting > 0 && g.q.head().born <= born) {
		return nil, false
	}
	now := g.now()
	g.q.pace(now)
	if r, _ := g.q.impossible(p.lane, p.weight, p.costs); r != "" {
		return nil, false
	}
	if bound, _ := g.q.check(now, p.lane, p.weight, p.costs); bound != noBound {
		return nil, false
	}
	g.q.grant(now, p)
	g.started(p, false)
	return p, true
}

// prepare fills in what the call asks for.
func (g *Gate) prepare(p *Permit, call Call) error {
	q := &g.q
	if call.Weight < 0 {
		return fmt.Errorf("%w: gate %s: weight %d", ErrInvalidCall, g.name, call.Weight)
	}
	p.gate, p.wire = g, call.Wire
	if p.lane == nil || !p.lane.holders { // holders have a permit already
		p.lane, p.weight = q.lanes[0], max(int64(call.Weight), 1)
		if call.Lane != "" {
			p.lane = nil
			for _, l := range q.lanes {
				if l.Name == call.Lane && !l.holders && !l.gone {
					p.lane = l
				}
			}
			if p.lane == nil {
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
		p.costs = q.costs(call.Costs)
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
func (g *Gate) started(p *Permit, again bool) {
	if d := g.cfg.Load().Timeout; d > 0 && p.attempt != nil {
		p.attempt.deadline = g.base.Add(p.granted + d)
	}
	g.attempts++
	if !again {
		g.budget.First()
	}
	if g.keep != nil {
		g.keep.touch()
	}
}

// admit waits for the grant of p. again is set for a repeated attempt.
func (g *Gate) admit(ctx context.Context, call Call, p *Permit, again *Tries) error {
	if err := ctx.Err(); err != nil {
		return g.reject(&Rejected{Reason: ended(err), Last: err}, again)
	}
	if _, nested := ctx.Value(held{g}).(*Permit); nested && p.lane == nil {
		return fmt.Errorf("%w (gate %s)", ErrNested, g.name)
	}
	g.mu.Lock()
	q := &g.q
	if err := g.prepare(p, call); err != nil {
		g.mu.Unlock()
		return err
	}
	now := g.now()
	q.book(now)
	q.pace(now)
	if q.closed {
		return g.rejectAndUnlock(Draining, noBound, 0, again)
	}
	if r, bound := q.impossible(p.lane, p.weight, p.costs); r != "" {
		return g.rejectAndUnlock(r, bound, 0, again)
	}
	if q.waiting == 0 || p.lane.holders {
		if bound, _ := q.check(now, p.lane, p.weight, p.costs); bound == noBound {
			q.grant(now, p)
			g.started(p, again != nil)
			g.mu.Unlock()
			return nil
		}
	}
	w := &waiter{lane: p.lane, weight: p.weight, costs: p.costs, named: call.Costs, permit: p, born: now, again: again != nil, patient: call.Patient, ready: make(chan struct{}, 1)}
	if again != nil {
		w.born = again.born
	}
	if r, bound, after := g.foresee(ctx, now, w, call.Patient, again != nil); r != "" {
		return g.rejectAndUnlock(r, bound, after, again)
	}
	w.blocked = append(make([]time.Duration, 0, len(q.blocked)), q.blocked...)
	q.enqueue(w, again != nil)
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
		w.permit.waits = g.q.waited(w)
		r = ended(err)
	case r == "":
		g.attempts--
		g.q.release(now, w.permit, true)
		r = ended(err)
	default:
		err = nil
	}
	waits := w.permit.Waits()
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
		w.deadline = max(deadline.Sub(g.base), 1)
		if at >= w.deadline {
			return q.late(Deadline, bound), bound, at - now
		}
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

func (g *Gate) rejectAndUnlock(r Reason, bound int, after time.Duration, again *Tries) error {
	e := &Rejected{Reason: r, Bound: g.q.boundName(bound), RetryAfter: after}
	g.figures(e)
	g.refused[r]++
	g.mu.Unlock()
	return g.reject(e, again)
}

func (g *Gate) figures(e *Rejected) {
	e.Concurrency, e.InUse, e.Waiting = max(g.cfg.Load().Concurrency, 0), int(g.q.inUse), g.q.waiting
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

// stepAndUnlock grants what can be granted, arms the timer, releases the lock
// and wakes those who were granted or refused.
func (g *Gate) stepAndUnlock(now time.Duration) {
	g.q.book(now)
	// Who may start in the instant in which its patience ends does start.
	again := g.q.step(now)
	for g.q.expire(now) {
		again = g.q.step(now)
	}
	g.arm(now, again)
	list := g.q.wake
	g.q.wake = nil
	for w := list; w != nil; w = w.chain {
		if w.outcome == "" {
			g.started(w.permit, w.again)
		}
	}
	g.mu.Unlock()
	for w := list; w != nil; {
		next := w.chain
		w.chain = nil
		w.ready <- struct{}{}
		w = next
	}
}

// arm sees to it that tick runs at the time again. The timer is dropped when
// nothing waits: one kept from outside a synctest bubble would hang in it.
func (g *Gate) arm(now, again time.Duration) {
	if again == meter.Later || g.q.waiting == 0 {
		if g.timer != nil {
			g.timer.Stop()
			g.timer = nil
		}
		return
	}
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(again-now, g.tick)
	case g.due != again:
		g.timer.Reset(again - now)
	}
	g.due = again
}

func (g *Gate) tick() {
	g.mu.Lock()
	g.due = -1 // it has fired: arm must set it again
	now := g.now()
	g.q.book(now)
	g.stepAndUnlock(now)
}

// Pause closes the provider for d, for everybody: nothing starts until then,
// then one probe, and on its success the rate opens step by step. Of two
// pauses the later end counts; a d of 0 or less is none.
func (g *Gate) Pause(d time.Duration) {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.q.closeUntil(now, now+d, 0)
	g.stepAndUnlock(now)
	g.observePause(d)
}

// Close refuses all that wait and all that come with ErrDraining, and writes
// the durable state. Permits in use stay valid. It can be called twice.
func (g *Gate) Close() error {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.q.closed = true
	g.q.sweep(func(*waiter) (Reason, time.Duration) { return Draining, 0 })
	keep := g.keep
	g.keep = nil
	g.stepAndUnlock(now)
	if keep != nil {
		return keep.close()
	}
	return nil
}
