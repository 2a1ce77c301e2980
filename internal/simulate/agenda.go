package simulate

import "time"

// event is something that will happen. Events of the same time happen in the
// order in which they were scheduled, so that a run can be repeated.
type event struct {
	at     time.Duration
	order  uint64
	kind   uint8
	client int32
	call   int32
}

// agenda is a binary heap of events, the earliest first.
type agenda struct {
	heap  []event
	count uint64
}

func (a *event) before(b *event) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (a *agenda) next() (time.Duration, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

func (a *agenda) add(e event) {
	a.count++
	e.order = a.count
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&a.heap[up]) {
			break
		}
		a.heap[i] = a.heap[up]
		i = up
	}
	a.heap[i] = e
}

func (a *agenda) pop() event {
	first := a.heap[0]
	n := len(a.heap) - 1
	e := a.heap[n]
	a.heap = a.heap[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && a.heap[down+1].before(&a.heap[down]) {
			down++
		}
		if !a.heap[down].before(&e) {
			break
		}
		a.heap[i] = a.heap[down]
		i = down
	}
	a.heap[i] = e
	return first
}

// line is a first-in-first-out queue.
type line[T any] struct {
	items []T
	head  int
}

func (l *line[T]) len() int { return len(l.items) - l.head }
func (l *line[T]) push(v T) { l.items = append(l.items, v) }
func (l *line[T]) first() T { return l.items[l.head] }

func (l *line[T]) pop() T {
	v := l.items[l.head]
	l.head++
	if l.head > 1024 && l.head > len(l.items)/2 {
		l.items = l.items[:copy(l.items, l.items[l.head:])]
		l.head = 0
	}
	return v
}
