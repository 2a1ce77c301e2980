package semaphore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// waiter is one caller in line. Its result is decided under the semaphore's
// mutex, when it is taken out of the line; then it is woken.
type waiter struct {
	prev, next *waiter
	n          int64
	err        error // why there was no grant
	// Who can give up sleeps in a select, which takes a channel: ready, of
	// capacity 1, so that telling never blocks. Who cannot sleeps on the Cond.
	// A channel belongs to the synctest bubble that made it and cannot serve
	// another waiter. A Cond belongs to nobody, so a waiter with one is kept.
	ready chan struct{}
	cond  *sync.Cond  // its lock is the semaphore's mutex
	awake atomic.Bool // the sleeper of the Cond has the waiter for itself
	turn  int32       // the turn of the grant
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

// has tells whether w, which was in line, still is.
func (l *line) has(w *waiter) bool { return w.prev != nil || l.head == w }

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

// wake looks at no waiter that it has woken: it may be in line again.
func (l *woken) wake() {
	for w := l.head; w != nil; {
		next := w.next
		w.next = nil
		if w.ready != nil {
			w.ready <- struct{}{}
		} else {
			w.awake.Store(true)
			w.cond.Signal()
		}
		w = next
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
	done := ctx.Done()
	if done == nil && !bounded {
		return s.stay(n)
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
	select {
	case <-w.ready:
	case <-done:
		s.leave(w, ctx.Err())
	case <-timeout:
		s.leave(w, ErrWaitTimeout)
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
	return s.permit(int64(w.turn), n), nil
}

// stay is wait for a caller who cannot give up. It allocates nothing if a
// waiter was kept.
func (s *Semaphore) stay(n int64) (Permit, error) {
	s.mu.Lock()
	if n > s.limit {
		defer s.mu.Unlock()
		return Permit{}, s.refusal(ErrTooLarge, n)
	}
	w := s.spare.tail
	if w == nil {
		w = &waiter{cond: sync.NewCond(&s.mu)}
	} else {
		s.spare.remove(w)
	}
	w.n = n
	if s.join(w); s.line.has(w) {
		for !w.awake.Load() {
			w.cond.Wait()
		}
	}
	turn, err := w.turn, w.err
	if s.spare.n < spares {
		w.err = nil
		w.awake.Store(false)
		s.spare.push(w)
	}
	s.mu.Unlock()
	if err != nil {
		return Permit{}, err
	}
	return s.permit(int64(turn), n), nil
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
	granted := s.join(w)
	if noWait && s.line.has(w) {
		granted = s.abandon(w, ErrWaitTimeout)
	}
	s.mu.Unlock()
	granted.wake()
	return w, w.err
}

// join puts w at the end of the line. If nobody was in line w may be granted at
// once, and w only.
func (s *Semaphore) join(w *waiter) (granted woken) {
	s.line.push(w)
	if s.line.head == w {
		// From here on the free permits change only by being returned, and
		// whoever returns one will look at the line.
		s.state.Or(queued)
		s.unpark()
		granted = s.grant()
	}
	return granted
}

// leave takes w out of the line because of err, unless it was told its result
// already: that one holds then.
func (s *Semaphore) leave(w *waiter, err error) {
	s.mu.Lock()
	var granted woken
	if s.line.has(w) {
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
			w.turn = int32(st & turnMask)
			s.line.remove(w)
			granted.push(w)
		}
	}
	if s.state.Load()&queued != 0 {
		s.state.And(^queued)
	}
	return granted
}
