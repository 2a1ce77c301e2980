package batch

import "runtime"

// worker is a goroutine that runs calls. One without work is on a stack, so that
// the one that has run last runs next and the others stay asleep.
type worker struct {
	wake chan struct{}
	next *worker
}

// start wakes an idle worker; nil is none. The channel has room for the signal.
func (w *worker) start() {
	if w != nil {
		w.wake <- struct{}{}
	}
}

// search sees to it, under the mutex, that somebody looks for the items there
// are. It returns the worker that has to be started after the mutex is released,
// if any. One worker at a time is on its way: when it finds an item it sends the
// next one, so a burst of items does not wake more workers than find work.
func (s *stream[K, In, Out]) search() *worker {
	if s.searching || s.open.head == nil || s.closed {
		return nil
	}
	s.searching = true
	if w := s.idle; w != nil {
		s.idle, w.next = w.next, nil
		return w
	}
	// Every worker is running a call, and there are fewer of those than cells.
	s.hire()
	return nil
}

func (s *stream[K, In, Out]) hire() {
	s.working.Add(1)
	go func() {
		defer s.working.Done()
		w := &worker{wake: make(chan struct{}, 1)}
		for first := true; !s.work(w, first); first = false {
		}
	}()
}

// work runs calls until the stream is closed, then it returns true, or until one
// panics, then it returns false. searching says that this worker is the one on
// its way.
func (s *stream[K, In, Out]) work(w *worker, searching bool) (closed bool) {
	var c *cell[K, In, Out] // what is run
	defer func() {
		if c != nil {
			s.broken(c, recover())
		}
	}()
	wake := false // whether the consumer has to be woken
	s.mu.Lock()
	for n := 0; !s.closed; {
		c = s.open.take()
		if c == nil {
			if searching = searching || !s.searching; searching && n < polls {
				s.searching = true
				n++
				s.mu.Unlock()
				s.consumer.wake(wake)
				runtime.Gosched()
			} else {
				if searching {
					s.searching = false
				}
				w.next, s.idle = s.idle, w
				s.mu.Unlock()
				s.consumer.wake(wake)
				<-w.wake
				searching, n = true, 0
			}
			wake = false
			s.mu.Lock()
			continue
		}
		if searching {
			s.searching, searching, n = false, false, 0
		}
		other := s.search()
		s.mu.Unlock()
		s.consumer.wake(wake)
		other.start()

		if s.ctx.Err() != nil {
			c.Err = notStarted(s.parent)
		} else {
			c.Out, c.Err = s.call(s.ctx, c.queue.key, c.In)
		}

		s.mu.Lock()
		wake = s.finished(c)
		c = nil
	}
	s.mu.Unlock()
	return true
}

// broken finishes the item of a call that has not returned. v is what it
// panicked with; nil means that its goroutine ends, so another one has to go on.
func (s *stream[K, In, Out]) broken(c *cell[K, In, Out], v any) {
	c.Err = ErrGoexit
	if v != nil {
		p := panicError(v)
		c.Err, c.raise = p, !s.panicsAsErrors
	}
	s.mu.Lock()
	if c.raise && s.raised == nil {
		s.raised = c.Err.(*PanicError)
	}
	wake := s.finished(c)
	var other *worker
	if v == nil {
		other = s.search()
	}
	s.mu.Unlock()
	s.consumer.wake(wake)
	other.start()
}

// finished gives back the worker of an item and finishes it.
func (s *stream[K, In, Out]) finished(c *cell[K, In, Out]) (wake bool) {
	c.queue.running--
	s.open.add(c.queue)
	return s.finish(c)
}

// finish puts the cell with the done ones, and reports whether the consumer has
// to be woken for it.
func (s *stream[K, In, Out]) finish(c *cell[K, In, Out]) (wake bool) {
	s.done.push(c)
	return s.consumer.mustWake(s.want < 0 || s.want == c.Index)
}
