package batch

import (
	"errors"
	"iter"
	"runtime/debug"
)

// produce iterates the input, in a goroutine of its own for the whole loop.
func (s *stream[K, In, Out]) produce(in iter.Seq[In]) {
	returned := false
	defer func() {
		v := recover()
		s.mu.Lock()
		if v != nil && s.abandoned {
			s.mu.Unlock()
			panic(v) // nobody is left to be told
		}
		if v != nil {
			s.inPanic = panicError(v)
		}
		s.inGoexit = v == nil && !returned
		s.ended = true
		wake := s.consumer.mustWake(true)
		close(s.produced)
		s.mu.Unlock()
		s.consumer.wake(wake)
	}()
	var index int64
	var q *queue[K, In, Out]
	for item := range in {
		key := s.key(item)
		if q == nil || q.key != key {
			q = s.queueOf(key)
		}
		if q.put++; q.put%resize == 0 {
			s.resize(q)
		}
		if !s.put(q, index, item) {
			break
		}
		index++
	}
	returned = true
}

// resize is after how many items of a gate its concurrency is looked at again.
const resize = 64

func (s *stream[K, In, Out]) resize(q *queue[K, In, Out]) {
	n := s.workersOf(s.limit(q.key))
	s.mu.Lock()
	q.workers = n
	s.bound = max(s.bound, s.options.bound(n))
	s.open.add(q)
	w := s.search() // there may be no room for an item that would start it
	s.mu.Unlock()
	w.start()
}

// queueOf returns the queue of the key. Queues without items are forgotten once
// there are more of them than items can be out, so that a stream over any number
// of gates stays small.
func (s *stream[K, In, Out]) queueOf(key K) *queue[K, In, Out] {
	if q := s.queues[key]; q != nil {
		return q
	}
	q := &queue[K, In, Out]{key: key, workers: s.workersOf(s.limit(key))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = max(s.bound, s.options.bound(q.workers))
	if len(s.queues) > 2*s.bound {
		for k, old := range s.queues {
			if old.ready.n == 0 && old.running == 0 {
				delete(s.queues, k)
			}
		}
	}
	s.queues[key] = q
	return q
}

// put hands over one item, once there is room for it, and reports whether the
// input is wanted any further.
func (s *stream[K, In, Out]) put(q *queue[K, In, Out], index int64, item In) bool {
	s.mu.Lock()
	for s.out >= s.bound && s.ctx.Err() == nil {
		s.producer.waiting, s.held = true, true
		s.mu.Unlock()
		select {
		case <-s.producer.signal:
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		s.producer.waiting, s.held = false, false
	}
	c := s.free.pop()
	if c == nil {
		c = new(cell[K, In, Out])
	}
	s.out++
	c.In, c.Index, c.queue = item, index, q
	if s.ctx.Err() != nil {
		c.Err = notStarted(s.parent)
		wake := s.finish(c)
		s.mu.Unlock()
		s.consumer.wake(wake)
		return false
	}
	q.ready.push(c)
	s.open.add(q)
	w := s.search()
	s.mu.Unlock()
	w.start()
	return true
}

func panicError(v any) *PanicError {
	if err, ok := v.(error); ok {
		if p, ok := errors.AsType[*PanicError](err); ok {
			return p // of a stream inside of this one
		}
	}
	return &PanicError{Value: v, Stack: debug.Stack()}
}
