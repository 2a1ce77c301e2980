package rate

import (
	"context"
	"time"
)

// queue is the callers that wait for one key of a Keyed. It is there only while
// there are any, and so is its timer.
type queue struct {
	line
	timer *time.Timer
}

// wait gets in line for n units of the key of hash h, which cannot be had now.
// The caller holds the lock of s, which wait releases.
func (k *Keyed) wait(ctx context.Context, s *shard, h uint64, n int64, now instant) error {
	q := s.queues[h]
	if deadline, ok := ctx.Deadline(); ok {
		var ahead line
		if q != nil {
			ahead = q.line
		}
		after := k.clock.until(now, k.behind(s, h, ahead.units, n, now))
		if after >= time.Until(deadline) {
			s.mu.Unlock()
			return &Refusal{Reason: ErrDeadline, N: n, Capacity: k.limit.Burst, RetryAfter: after, Waiting: ahead.n}
		}
	}
	if q == nil {
		if s.queues == nil {
			s.queues = make(map[uint64]*queue)
		}
		q = &queue{}
		s.queues[h] = q
	}
	w := &waiter{n: n, ready: make(chan struct{}, 1)}
	q.push(w)
	k.stepAndUnlock(s, h, q, now)

	select {
	case <-w.ready:
	case <-ctx.Done():
		k.leave(s, h, w)
	}
	return ctx.Err()
}

// behind is the tick at which n units of the key could be had at the earliest,
// after those that wait for it have had theirs.
func (k *Keyed) behind(s *shard, h uint64, ahead, n int64, now instant) int64 {
	due := k.overflow.Load()
	if e, _ := s.lookup(h, now); e != nil {
		due = e.due
	}
	due = min(max(due, now.floor), now.ceil+k.full)
	before := int64(farAway)
	if ahead < farAway/k.unit {
		before = ahead * k.unit
	}
	return due + before + (n*k.unit - k.full)
}

// stepAndUnlock grants what can be granted to those who wait for the key, sets
// the timer for the first one that is left, releases the lock of s and wakes
// those who were granted.
func (k *Keyed) stepAndUnlock(s *shard, h uint64, q *queue, now instant) {
	var granted woken
	for q.head != nil {
		w := q.head
		at, ok := k.take(s, h, w.n, now)
		if !ok {
			k.arm(s, h, q, k.clock.until(now, at))
			break
		}
		q.remove(w)
		granted.push(w)
	}
	if q.head == nil {
		if q.timer != nil {
			q.timer.Stop()
		}
		delete(s.queues, h)
	}
	s.mu.Unlock()
	granted.wake()
}

func (k *Keyed) arm(s *shard, h uint64, q *queue, after time.Duration) {
	if q.timer != nil {
		q.timer.Reset(after)
		return
	}
	q.timer = time.AfterFunc(after, func() {
		s.mu.Lock()
		if s.queues[h] != q {
			s.mu.Unlock()
			return
		}
		k.stepAndUnlock(s, h, q, k.clock.read())
	})
}

// leave takes w out of the line, if it is still there. Those behind it may be
// content with less.
func (k *Keyed) leave(s *shard, h uint64, w *waiter) {
	s.mu.Lock()
	if !w.queued {
		s.mu.Unlock()
		return
	}
	q := s.queues[h]
	q.remove(w)
	k.stepAndUnlock(s, h, q, k.clock.read())
}
