package meter

import "time"

// cell is the cost of starts between first and last. For a window, unsent of
// it was granted but did not reach the wire; for a bucket, due and frac are
// when it would have been full without this cell and those after it.
type cell struct {
	first, last  time.Duration
	cost, unsent int64
	due          time.Duration
	frac         int64
}

// cells is a queue of cells in the order of time. A cell keeps its absolute
// index for as long as it lives.
type cells struct {
	ring []cell // length is a power of two
	head uint64 // absolute index of the oldest cell
	tail uint64 // absolute index after the newest
}

// many is the number of cells above which neighbours are joined.
const many = 8192

func (q *cells) len() int          { return int(q.tail - q.head) }
func (q *cells) at(i uint64) *cell { return &q.ring[i&uint64(len(q.ring)-1)] }
func (q *cells) has(i uint64) bool { return i >= q.head && i < q.tail }
func (q *cells) pop()              { q.head++ }
func (q *cells) newest() *cell     { return q.at(q.tail - 1) }
func (q *cells) oldest() *cell     { return q.at(q.head) }

// add books n units at now, in the newest cell if that began less than join
// ago or is empty, and returns the index of the cell.
func (q *cells) add(now, join time.Duration, n, unsent int64) uint64 {
	if q.len() > 0 {
		c := q.newest()
		if c.cost == 0 && c.unsent == 0 {
			c.first = now
		}
		if now-c.first < join || c.first == now {
			c.last = max(c.last, now)
			c.cost, c.unsent = c.cost+n, c.unsent+unsent
			return q.tail - 1
		}
	}
	if q.len() == len(q.ring) {
		q.grow()
	}
	q.tail++
	*q.newest() = cell{first: now, last: now, cost: n, unsent: unsent}
	return q.tail - 1
}

func (q *cells) grow() {
	old := *q
	q.ring = make([]cell, max(8, 2*len(old.ring)))
	for i := old.head; i != old.tail; i++ {
		*q.at(i) = *old.at(i)
	}
}
