package batch

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"time"
)

// job says what is to be done with the items.
type job[K comparable, In, Out any] struct {
	options
	key   func(In) K  // names the queue of an item
	limit func(K) int // how many may run at once by its gate; 0: it does not say
	call  func(context.Context, K, In) (Out, error)
}

// A stream moves items in cells. A cell is filled by the producer, waits in the
// queue of its gate, is run by a worker, waits among the done, is handed to the
// loop and goes back to the free ones:
//
//	free -> queue.ready -> (worker) -> done -> (loop) -> free
//
// There are never more than bound cells out, so memory is flat and nothing is
// allocated for an item. Every list is spliced under one mutex that is held for
// a few instructions; a party with nothing to do waits on a channel of its own
// that is signalled only while it waits. Nothing waits for a batch to fill: the
// loop takes all results there are, a worker takes one item.
type stream[K comparable, In, Out any] struct {
	job[K, In, Out]
	parent context.Context
	ctx    context.Context // of the calls; canceled when the loop ends
	cancel context.CancelFunc

	mu        sync.Mutex
	free      chain[K, In, Out]
	done      chain[K, In, Out]
	queues    map[K]*queue[K, In, Out] // written by the producer, under mu
	open      fifo[K, In, Out]         // queues with an item and a worker to spare
	out       int                      // cells that are not free
	bound     int                      // how many may be
	idle      *worker                  // a stack
	searching bool                     // one worker is on its way to look for an item
	held      bool                     // the producer has an item and no room for it
	closed    bool                     // the loop has ended
	ended     bool                     // the producer has
	abandoned bool                     // the producer was not waited for
	raised    *PanicError              // the first panic of a call, if it is to be raised

	producer party
	consumer party
	want     int64 // the index an ordered consumer waits for, else -1
	few      int   // how many cells the consumer may keep

	working  sync.WaitGroup
	produced chan struct{} // closed when the producer has ended
	inPanic  *PanicError   // how it ended, valid once produced is closed
	inGoexit bool
}

// grace is how long the end of the loop waits for a blocked input.
const grace = time.Second

// party is the producer's or the consumer's way to wait: it sets waiting under
// the mutex, and who clears it signals.
type party struct {
	waiting bool
	signal  chan struct{}
}

// mustWake reports whether the party has to be signalled, and clears waiting.
func (p *party) mustWake(when bool) bool {
	if !when || !p.waiting {
		return false
	}
	p.waiting = false
	return true
}

// wake must be called without the mutex. A signal may come late, so a party
// looks again whenever it has one, and one signal is as good as two.
func (p *party) wake(yes bool) {
	if !yes {
		return
	}
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

func newStream[K comparable, In, Out any](ctx context.Context, j job[K, In, Out]) *stream[K, In, Out] {
	s := &stream[K, In, Out]{
		job:      j,
		parent:   ctx,
		queues:   make(map[K]*queue[K, In, Out]),
		want:     -1,
		producer: party{signal: make(chan struct{}, 1)},
		consumer: party{signal: make(chan struct{}, 1)},
		produced: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.bound = s.options.bound(1)
	return s
}

// run is the loop: it calls yield with the results until it returns false.
func (j job[K, In, Out]) run(ctx context.Context, in iter.Seq[In], yield func(Result[In, Out]) bool) {
	s := newStream(ctx, j)
	defer s.close() // also when the body of the loop panics

	go s.produce(in)
	var finished bool
	if s.ordered {
		finished = s.consumeInOrder(yield)
	} else {
		finished = s.consume(yield)
	}
	s.close()
	// A panic is never dropped, not even by a break.
	if !finished && s.raised != nil {
		panic(s.raised)
	}
	select {
	case <-s.produced:
		if s.inPanic != nil {
			panic(s.inPanic)
		}
		if s.inGoexit {
			runtime.Goexit()
		}
	default:
	}
}

// close stops everything and waits for it.
func (s *stream[K, In, Out]) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	s.cancel() // wakes the producer, too
	for w := idle; w != nil; {
		next := w.next
		w.wake <- struct{}{}
		w = next
	}
	s.working.Wait()
	select {
	case <-s.produced:
		return
	default:
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-s.produced:
	case <-t.C:
		s.mu.Lock()
		s.abandoned = !s.ended
		s.mu.Unlock()
	}
}

// consume reports whether the results came to their end.
func (s *stream[K, In, Out]) consume(yield func(Result[In, Out]) bool) bool {
	var free chain[K, In, Out]
	for {
		c := s.collect(&free, -1)
		if c == nil {
			return true
		}
		for c != nil {
			next := c.next
			if !s.deliver(c, &free, yield) {
				return false
			}
			c = next
		}
	}
}

// consumeInOrder keeps the results that came too early in a ring.
func (s *stream[K, In, Out]) consumeInOrder(yield func(Result[In, Out]) bool) bool {
	var free chain[K, In, Out]
	var ring []*cell[K, In, Out]
	var want int64
	for {
		c := s.collect(&free, want)
		if c == nil {
			return true
		}
		for c != nil {
			next := c.next
			ring = place(ring, c, want)
			c = next
		}
		for {
			at := want % int64(len(ring))
			c := ring[at]
			if c == nil {
				break
			}
			ring[at] = nil
			want++
			if !s.deliver(c, &free, yield) {
				return false
			}
		}
	}
}

// place puts the cell into the ring, in which the oldest index is want. A ring
// that is too small is doubled.
func place[K comparable, In, Out any](ring []*cell[K, In, Out], c *cell[K, In, Out], want int64) []*cell[K, In, Out] {
	if need := c.Index - want + 1; need > int64(len(ring)) {
		size := int64(max(64, 2*len(ring)))
		for size < need {
			size *= 2
		}
		wider := make([]*cell[K, In, Out], size)
		for _, old := range ring {
			if old != nil {
				wider[old.Index%size] = old
			}
		}
		ring = wider
	}
	ring[c.Index%int64(len(ring))] = c
	return ring
}

// deliver hands one result to the loop and then frees its cell, so that the
// body of the loop holds the input back.
func (s *stream[K, In, Out]) deliver(c *cell[K, In, Out], free *chain[K, In, Out], yield func(Result[In, Out]) bool) bool {
	if c.raise {
		panic(c.Err)
	}
	if !yield(c.Result) {
		return false
	}
	c.Result = Result[In, Out]{} // keep nothing alive
	free.push(c)
	// Cells go back a few at a time while there are results to hand over: the
	// producer does not need the last ones as long as the loop is the slower.
	if free.n > s.few {
		s.mu.Lock()
		wake := s.release(free)
		s.mu.Unlock()
		s.producer.wake(wake)
	}
	return true
}

// release takes back the cells, under the mutex, and reports whether the
// producer has to be woken.
func (s *stream[K, In, Out]) release(free *chain[K, In, Out]) bool {
	s.out -= free.n
	s.free.prepend(free)
	return s.producer.mustWake(s.out < s.bound)
}

// polls is how often a party with nothing to do yields the processor before it
// waits: while others are running, that is cheaper than to be woken.
const polls = 2

// collect frees the cells and returns the finished ones, as a chain in the order
// in which they finished. It waits for one, or in ordered mode for the one with
// the index want, and returns nil at the end.
func (s *stream[K, In, Out]) collect(free *chain[K, In, Out], want int64) *cell[K, In, Out] {
	canceled := s.parent.Done()
	for n := 0; ; n++ {
		s.mu.Lock()
		wake := s.release(free)
		if c := s.done.head; c != nil {
			s.done = chain[K, In, Out]{}
			s.consumer.waiting = false
			s.few = s.bound / 8
			s.mu.Unlock()
			s.producer.wake(wake)
			return c
		}
		if s.out == 0 && (s.ended || !s.held && s.parent.Err() != nil) {
			s.mu.Unlock()
			return nil
		}
		if n < polls {
			s.mu.Unlock()
			s.producer.wake(wake)
			runtime.Gosched()
			continue
		}
		s.consumer.waiting, s.want = true, want
		s.mu.Unlock()
		s.producer.wake(wake)
		select {
		case <-s.consumer.signal:
		case <-canceled:
			canceled = nil
			s.dropReady()
		}
	}
}

// dropReady finishes what waits in the queues, because ctx has ended.
func (s *stream[K, In, Out]) dropReady() {
	err := notStarted(s.parent)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		for c := q.ready.pop(); c != nil; c = q.ready.pop() {
			c.Err = err
			s.done.push(c)
		}
	}
}
