package rate

import (
	"context"
	"time"

	"github.com/metehq/mete/internal/meter"
)

// waiter is one caller in line. Its result is decided under the limiter's
// mutex and told by one send on ready.
type waiter struct {
	prev, next *waiter // next also chains those who are about to be woken
	n          int64
	ready      chan struct{} // capacity 1: telling never blocks
	queued     bool
	charge     meter.Charge // of the grant
	err        error        // or why there was none
}

// line is the waiters in the order of their arrival, linked through
// themselves: leaving it from anywhere costs the same.
type line struct {
	head, tail *waiter
	n          int
	units      int64 // what all of them ask for
}

func (q *line) push(w *waiter) {
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.n++
	q.units += w.n
	w.queued = true
}

func (q *line) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.n--
	q.units -= w.n
	w.queued = false
}

// woken is a list of waiters to be told once the lock is free.
type woken struct{ head, tail *waiter }

func (l *woken) push(w *waiter) {
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
}

func (l *woken) wake() {
	for w := l.head; w != nil; {
		// Once it is told, a waiter may be used for somebody else.
		next := w.next
		w.ready <- struct{}{}
		w = next
	}
}

// wait gets in line for n units and books them in g, if that is not nil. The
// caller holds mu, which wait releases.
func (l *Limiter) wait(ctx context.Context, now time.Duration, n int64, g *Grant) error {
	if err := l.foresee(ctx, now, n); err != nil {
		l.unlock()
		return err
	}
	w := l.spare
	if w == nil {
		w = &waiter{}
	}
	l.spare = nil
	// The channel is made anew: one that was made in another synctest bubble
	// cannot be waited for.
	*w = waiter{n: n, ready: make(chan struct{}, 1)}
	l.line.push(w)
	l.stepAndUnlock(now)

	select {
	case <-w.ready:
		if w.err == nil && ctx.Err() == nil {
			l.finish(w, g)
			return nil
		}
	case <-ctx.Done():
	}
	return l.leave(w, ctx.Err())
}

// foresee refuses a wait in vain: one that never ends, or that would pass the
// deadline of ctx. Where the grant and the deadline would come together, the
// deadline decides.
func (l *Limiter) foresee(ctx context.Context, now time.Duration, n int64) error {
	if err := l.impossible(n); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		at := l.meter.Backlog(now, l.line.units, n)
		if at-now >= time.Until(deadline) {
			return l.refusal(ErrDeadline, n, at-now)
		}
	}
	return nil
}

// finish takes over the charge and keeps the waiter for the next one.
func (l *Limiter) finish(w *waiter, g *Grant) {
	l.lock()
	if g != nil {
		g.limiter, g.charge = l, w.charge
	} else if b, ok := l.meter.(*meter.Bucket); ok {
		b.Final(&w.charge)
	}
	l.spare = w
	l.unlock()
}

// leave ends a waiter that was refused or whose context has ended. Where a
// grant and the end of the context come together, the context decides, and
// what was granted goes back.
func (l *Limiter) leave(w *waiter, err error) error {
	now := l.clock()
	l.lock()
	now = l.at(now)
	switch {
	case w.queued:
		l.line.remove(w)
	case w.err != nil:
		err = w.err
	default:
		l.meter.Settle(now, &w.charge, 0)
	}
	l.stepAndUnlock(now)
	return err
}

// stepAndUnlock grants what can be granted, arms the timer for the head of
// the line, releases the lock and wakes those who were granted.
func (l *Limiter) stepAndUnlock(now time.Duration) { l.stepUnlockWake(now, woken{}) }

// stepUnlockWake is stepAndUnlock that wakes those in list too.
func (l *Limiter) stepUnlockWake(now time.Duration, list woken) {
	again := meter.Later
	for w := l.line.head; w != nil; w = l.line.head {
		if again = l.meter.Ready(now, w.n); again > now {
			break
		}
		again = meter.Later
		l.line.remove(w)
		w.charge = l.meter.Take(now, w.n, true)
		l.keep(&w.charge) // until finish or leave
		list.push(w)
	}
	if l.line.n > 0 {
		// Nobody passes those who wait.
		if _, until, units := l.denied.read(); until != meter.Later || units != 1 {
			l.denied.set(now, meter.Later, 1)
		}
	} else {
		l.denied.lift()
	}
	l.arm(now, again)
	l.unlock()
	list.wake()
}

// recheck bounds the sleep of those who wait for a calendar: the wall clock
// may be set forward meanwhile.
const recheck = time.Minute

// arm sees to it that tick runs at the time again. The timer is dropped when
// nobody waits: one kept from outside a synctest bubble would hang in it.
func (l *Limiter) arm(now, again time.Duration) {
	if l.line.n == 0 || again == meter.Later {
		if l.timer != nil {
			l.timer.Stop()
			l.timer = nil
		}
		return
	}
	if l.wall {
		again = min(again, now+recheck)
	}
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(again-now, l.tick)
	case l.due != again:
		l.timer.Reset(again - now)
	}
	l.due = again
}

func (l *Limiter) onTick() {
	now := l.clock()
	l.lock()
	l.due = -1 // it has fired: arm must set it again
	l.stepAndUnlock(l.at(now))
}
