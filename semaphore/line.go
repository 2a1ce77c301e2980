package semaphore

import (
	"context"
	"time"
)

// waiter is one caller in line. Its result is decided under the semaphore's
// mutex and told by one send on ready.
type waiter struct {
	prev, next *waiter
	n          int64
	ready      chan struct{} // capacity 1: telling never blocks
	told       bool          // left the line with a result
	turn       int64         // the state whose turn the grant took
	err        error         // or why there was none
}

// line is the waiters in the order of their arrival, linked through
// themselves: leaving it from anywhere costs the same.
type line struct {
	head, tail *waiter
	n          int
}

func (l *line) push(w *waiter) {
	w.prev = l.tail
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.n++
}

func (l *line) remove(w *waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.n--
}

// woken is a list of waiters that were told their result and are to be woken
// once mu is free.
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
	for w := l.head; w != nil; w = w.next {
		w.ready <- struct{}{}
	}
}

// wait gets in line for n permits, for maxWait at most if it is bounded.
func (s *Semaphore) wait(ctx context.Context, n int64, bounded bool, maxWait time.Duration) (Permit, error) {
	if n <= 0 {
		return Permit{}, ErrWeight
	}
	if err := ctx.Err(); err != nil {
		s.canceled.Add(1)
		return Permit{}, err
	}
	w, err := s.enter(n, bounded && maxWait <= 0)
	if err != nil {
		return Permit{}, err
	}

	var timeout <-chan time.Time
	if bounded {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	if done := ctx.Done(); done == nil && timeout == nil {
		<-w.ready // a plain receive costs half of a select
	} else {
		select {
		case <-w.ready:
		case <-done:
			s.leave(w, ctx.Err())
		case <-timeout:
			s.leave(w, ErrWaitTimeout)
		}
	}
	if w.err != nil {
		return Permit{}, w.err
	}
	// Granted. If ctx was done by then it is ctx that decides, so that a
	// caller who cancels first never sees the permit (golang/go#63615).
	if err := ctx.Err(); err != nil {
		s.put(n)
		s.canceled.Add(1)
		return Permit{}, err
	}
	return s.permit(w.turn, n), nil
}

// enter gets in line for n permits, where they may be granted at once. With
// noWait it is in line no longer than that.
func (s *Semaphore) enter(n int64, noWait bool) (*waiter, error) {
	s.mu.Lock()
	if n > s.limit {
		defer s.mu.Unlock()
		return nil, s.refusal(ErrTooLarge, n)
	}
	// Allocated under the lock: an allocation can be made to help the garbage
	// collector, and callers held up outside the line would be passed by.
	w := &waiter{n: n, ready: make(chan struct{}, 1)}
	s.line.push(w)
	var granted woken
	if s.line.head == w {
		// From here on the free permits change only by being returned, and
		// whoever returns one will look at the line.
		s.state.Or(queued)
		s.unpark()
		granted = s.grant()
	}
	if noWait && !w.told {
		granted = s.abandon(w, ErrWaitTimeout)
	}
	s.mu.Unlock()
	granted.wake()
	return w, w.err
}

// leave takes w out of the line because of err, unless it was told its result
// already: that one holds then.
func (s *Semaphore) leave(w *waiter, err error) {
	s.mu.Lock()
	var granted woken
	if !w.told {
		granted = s.abandon(w, err)
	}
	s.mu.Unlock()
	granted.wake()
}

// abandon removes w without a grant. Those behind it may fit where it did not
// (golang/go#37852).
func (s *Semaphore) abandon(w *waiter, err error) woken {
	if err == ErrWaitTimeout {
		s.timeouts.Add(1)
		err = s.refusal(ErrWaitTimeout, w.n)
	} else {
		s.canceled.Add(1)
	}
	w.err = err
	s.line.remove(w)
	return s.grant()
}

// put returns n permits.
func (s *Semaphore) put(n int64) {
	s.state.Add(n << freeShift)
	s.handOn()
}

// handOn grants what became free if somebody is in line.
func (s *Semaphore) handOn() {
	if s.state.Load()&queued != 0 {
		s.mu.Lock()
		s.grantAndUnlock()
	}
}

// grantAndUnlock grants what can be granted, releases mu and only then wakes
// those who got it: whoever wakes finds the lock free.
func (s *Semaphore) grantAndUnlock() {
	granted := s.grant()
	s.mu.Unlock()
	granted.wake()
}

// grant gives what is free to the head of the line for as long as it fits. The
// permits are in use from here on, not from when the waiter wakes: nobody can
// take them in between. It returns whom to wake when mu, which is held, is
// released.
func (s *Semaphore) grant() (granted woken) {
	for w := s.line.head; w != nil; w = s.line.head {
		st := s.state.Load()
		if st>>freeShift < w.n {
			return granted
		}
		if s.state.CompareAndSwap(st, taken(st, w.n)) {
			w.turn = st
			s.line.remove(w)
			w.told = true
			granted.push(w)
		}
	}
	if s.state.Load()&queued != 0 {
		s.state.And(^queued)
	}
	return granted
}
