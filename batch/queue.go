package batch

// cell holds an item on its way through a stream.
type cell[K comparable, In, Out any] struct {
	Result[In, Out]
	queue *queue[K, In, Out]
	raise bool // Err is a panic for the loop
	next  *cell[K, In, Out]
}

// chain is a list of cells, first in, first out. The zero value is empty.
type chain[K comparable, In, Out any] struct {
	head, tail *cell[K, In, Out]
	n          int
}

func (l *chain[K, In, Out]) push(c *cell[K, In, Out]) {
	c.next = nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
	l.n++
}

func (l *chain[K, In, Out]) pop() *cell[K, In, Out] {
	c := l.head
	if c == nil {
		return nil
	}
	l.head = c.next
	if l.head == nil {
		l.tail = nil
	}
	l.n--
	c.next = nil
	return c
}

// prepend moves all cells of other to the front.
func (l *chain[K, In, Out]) prepend(other *chain[K, In, Out]) {
	if other.head == nil {
		return
	}
	other.tail.next = l.head
	if l.tail == nil {
		l.tail = other.tail
	}
	l.head = other.head
	l.n += other.n
	*other = chain[K, In, Out]{}
}

// queue is what one gate has to do.
type queue[K comparable, In, Out any] struct {
	key     K
	ready   chain[K, In, Out]
	running int
	workers int // how many may run at once
	put     int // items so far, to look at the gate's concurrency now and then
	listed  bool
	next    *queue[K, In, Out]
}

// open reports whether a worker may take an item.
func (q *queue[K, In, Out]) open() bool {
	return q.ready.head != nil && q.running < q.workers
}

// fifo is the list of open queues, which take turns.
type fifo[K comparable, In, Out any] struct {
	head, tail *queue[K, In, Out]
}

// add lists the queue if it is open and not listed already.
func (l *fifo[K, In, Out]) add(q *queue[K, In, Out]) {
	if q.listed || !q.open() {
		return
	}
	q.listed = true
	if l.tail == nil {
		l.head = q
	} else {
		l.tail.next = q
	}
	l.tail = q
}

// take returns the next item of the queue whose turn it is, or nil.
func (l *fifo[K, In, Out]) take() *cell[K, In, Out] {
	for l.head != nil {
		q := l.head
		if c := q.take(); c != nil {
			if q.next != nil || !q.open() {
				l.drop()
				l.add(q)
			}
			return c
		}
		l.drop() // it was emptied, or its gate has shrunk
	}
	return nil
}

func (l *fifo[K, In, Out]) drop() {
	q := l.head
	l.head = q.next
	if l.head == nil {
		l.tail = nil
	}
	q.next, q.listed = nil, false
}

func (q *queue[K, In, Out]) take() *cell[K, In, Out] {
	if !q.open() {
		return nil
	}
	q.running++
	return q.ready.pop()
}
