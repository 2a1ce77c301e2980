// Package semaphore limits how much work is in flight at once.
//
// A [Semaphore] holds a number of permits. [Semaphore.Acquire] takes some of
// them, waiting in line while they are in use, and gives a [Permit] that
// returns them:
//
//	p, err := s.Acquire(ctx, 1)
//	if err != nil {
//		return err
//	}
//	defer p.Release()
//
// # Order
//
// The line is first in, first out, whatever the weights: nobody passes the
// waiter at its head, TryAcquire included. So a heavy waiter is never starved,
// and it holds up the light ones behind it for as long as the present holders
// need to finish. Where that is not wanted, give heavy and light work two
// semaphores.
//
// # Nesting
//
// Work that holds a permit and asks the same semaphore for another one can
// wait for itself. Release before fanning out, or bound the wait with
// [Semaphore.AcquireWithin], whose error says who holds what.
//
// # Cost
//
// When a permit is free, Acquire and Release together are two to four atomic
// writes and no allocation. A waiter costs two allocations, about 200 bytes, and
// no goroutine; one whose context cannot end and whose wait has no bound costs
// no allocation, as a rule. Leaving the line costs the same whatever its length.
package semaphore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// MaxLimit is the largest limit a semaphore can have: 2^43 - 1, enough to
// count eight tebibytes by the byte.
const MaxLimit = 1<<43 - 1

// Semaphore is a weighted in-flight limit. Make one with [New]; it must not
// be copied. All methods may be called at the same time.
type Semaphore struct {
	// state is one word, so that the common cases are one atomic operation:
	//
	//	free (signed, 44 bits) | turn (19 bits) | queued (1 bit)
	//
	// free is limit less in use; below zero after the limit was lowered.
	// turn advances with every grant and says where the permit's slot is
	// looked for first. queued is set while somebody is in line: then nobody
	// takes a permit without mu, and whoever returns one takes mu to hand it on.
	state atomic.Int64
	// hot is a slot for one permit of weight 1 which, when released, may stay
	// parked there instead of going back to state: see permit.go.
	hot   atomic.Uint64
	slots atomic.Pointer[slots]

	misuse, timeouts, canceled atomic.Uint64

	mu    sync.Mutex
	limit int64
	line  line
	spare line // waiters that nobody uses, at most spares of them
}

// spares is how many waiters are kept: one for each caller who held a permit
// and is about to get in line again.
const spares = 16

const (
	queued    = 1
	turnStep  = 2
	turnMask  = 1<<freeShift - turnStep
	freeShift = 20
)

// New returns a semaphore of limit permits. A limit below 0 counts as 0, one
// above [MaxLimit] as MaxLimit. A semaphore of 0 permits refuses everything
// until it is resized.
func New(limit int64) *Semaphore {
	s := &Semaphore{limit: clamp(limit)}
	s.state.Store(s.limit << freeShift)
	s.slots.Store(newSlots(min(slotsFor(s.limit), firstSlots)))
	return s
}

func clamp(limit int64) int64 { return min(max(limit, 0), MaxLimit) }

// TryAcquire takes n permits if they are free and nobody is in line, and
// reports whether it did. It never waits. n below 1 is never granted.
func (s *Semaphore) TryAcquire(n int64) (Permit, bool) {
	for {
		h := s.hot.Load()
		st := s.state.Load()
		switch {
		case n <= 0 || st&queued != 0:
			return Permit{}, false
		case n == 1 && h&3 == parked && st >= 0:
			// If h still stands, it stood when st was read: nobody was in
			// line at that instant, and the permit was free.
			if s.hot.CompareAndSwap(h, h+1) {
				return Permit{s, &s.hot, h + 1, 1}, true
			}
		case st>>freeShift >= n:
			if s.state.CompareAndSwap(st, taken(st, n)) {
				return s.permit(st, n), true
			}
		case h&3 == parked:
			s.unpark()
			s.handOn()
		case s.hot.Load() == h:
			return Permit{}, false
		}
	}
}

// taken is the state after n permits were taken and one turn has passed.
func taken(st, n int64) int64 {
	return (st-n<<freeShift)&^turnMask | (st+turnStep)&turnMask
}

// Acquire takes n permits, waiting in line until they are free or ctx is done.
//
// The error is ctx.Err() if ctx is done, also if that happens together with
// the grant: a done context never gets a permit. It is [ErrTooLarge] at once
// if n is more than the limit, or as soon as the limit is lowered below n, and
// [ErrWeight] if n is below 1. On an error the permit is the zero Permit, whose
// Release does nothing.
func (s *Semaphore) Acquire(ctx context.Context, n int64) (Permit, error) {
	if ctx.Err() == nil {
		if p, ok := s.TryAcquire(n); ok {
			return p, nil
		}
	}
	return s.wait(ctx, n, false, 0)
}

// AcquireWithin is Acquire that waits for maxWait at most and then fails with
// [ErrWaitTimeout], which is no context error: the work has not begun and had
// no part in it. A maxWait of 0 or less does not wait.
func (s *Semaphore) AcquireWithin(ctx context.Context, n int64, maxWait time.Duration) (Permit, error) {
	if ctx.Err() == nil {
		if p, ok := s.TryAcquire(n); ok {
			return p, nil
		}
	}
	return s.wait(ctx, n, true, maxWait)
}

// Do calls f while it holds n permits. They are released when f returns, and
// also when it panics or calls runtime.Goexit. The error is that of Acquire or
// of f.
func (s *Semaphore) Do(ctx context.Context, n int64, f func() error) error {
	p, err := s.Acquire(ctx, n)
	if err != nil {
		return err
	}
	defer p.Release()
	return f()
}

// Resize sets the limit, with the bounds of [New]. It never waits and takes
// nothing away from those who hold permits: after lowering the limit nothing is
// granted until enough of them have released. Raising it grants at once what
// now fits. Waiters that ask for more than the new limit fail with
// [ErrTooLarge] at once.
func (s *Semaphore) Resize(limit int64) {
	limit = clamp(limit)
	s.mu.Lock()
	s.state.Add((limit - s.limit) << freeShift)
	s.limit = limit
	var refused woken
	for w := s.line.head; w != nil; {
		next := w.next
		if w.n > limit {
			w.err = s.refusal(ErrTooLarge, w.n)
			s.line.remove(w)
			refused.push(w)
		}
		w = next
	}
	s.grantAndUnlock()
	refused.wake()
}

// Stats are counts of one instant, and totals since [New].
type Stats struct {
	Limit   int64 // permits there are
	InUse   int64 // permits held; above Limit for a while after it was lowered
	Waiting int   // callers in line

	Misuse   uint64 // releases of a permit that was already released
	Timeouts uint64 // acquires that ended with ErrWaitTimeout
	Canceled uint64 // acquires that ended because their context was done
}

// Stats returns the present counts. Limit, InUse and Waiting belong to one
// instant.
func (s *Semaphore) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Limit:    s.limit,
		InUse:    s.inUse(),
		Waiting:  s.line.n,
		Misuse:   s.misuse.Load(),
		Timeouts: s.timeouts.Load(),
		Canceled: s.canceled.Load(),
	}
}

// inUse is called with mu held, which keeps the limit and its share of the
// state together.
func (s *Semaphore) inUse() int64 {
	for {
		h := s.hot.Load()
		n := s.limit - s.state.Load()>>freeShift
		if h&3 == parked {
			n--
		}
		if s.hot.Load() == h {
			return n
		}
	}
}
