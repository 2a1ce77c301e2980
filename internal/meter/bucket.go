package meter

import (
	"math"
	"time"
)

// BucketSpec describes a Bucket: N units per Per flow in, Burst fit.
type BucketSpec struct {
	N     int64
	Per   time.Duration
	Burst int64
	Alone bool // a cost above Burst is admitted when the bucket is full; the rest is debt
}

// Bucket is a token bucket: at most Burst + N/Per * t units in any t. Where
// the burst is worth less than Catchup, a late start keeps its due time and
// up to that much more may start together.
//
// It is kept as the time at which the bucket would be full again, and beside
// it the charges since it last was full, so that a refund gives the state that
// the bucket would have without the charge, to the unit.
type Bucket struct {
	spec    BucketSpec
	full    pacer // due: when the bucket is full again
	credit  time.Duration
	join    time.Duration
	log     cells
	stretch float64
	stopped time.Duration // when the rate became 0; time stands still since
	open    int           // charges that may be refunded: see Keep
	kept    uint64        // absolute index after the newest cell with one of them
}

// NewBucket returns a full bucket.
func NewBucket(s BucketSpec) *Bucket {
	b := &Bucket{stretch: 1}
	b.full.due = fresh
	b.set(s)
	b.full.span, b.full.units = s.Per, max(s.N, 1)
	return b
}

func (b *Bucket) set(s BucketSpec) {
	s.Burst = max(s.Burst, 1)
	b.spec = s
	p := pacer{span: s.Per, units: max(s.N, 1)}
	fill, _ := p.length(s.Burst - 1)
	b.credit = max(Catchup-fill, 0)
	b.join = 0
	if s.Burst > many/2 {
		b.join = fill / (many / 2)
	}
}

// Update changes the limit. The level stays, to a part of a unit, but never
// above the new burst. What was taken before can no longer be refunded.
func (b *Bucket) Update(now time.Duration, s BucketSpec) {
	s.Burst = max(s.Burst, 1)
	if s == b.spec {
		return
	}
	at, old := b.time(now), b.spec
	missing := 0.0
	if due := b.full.ready(0); due > at {
		missing = float64(due-at) / float64(b.full.span) * float64(b.full.units)
	}
	b.set(s)
	b.log.head = b.log.tail
	b.stopped, b.full.kept = now, 0
	more := s.Burst - old.Burst
	if s.N == old.N && s.Per == old.Per && s.N > 0 { // exactly, then
		if more > 0 {
			b.full.push(now, 0, more)
		} else {
			b.full.pull(-more)
		}
		return
	}
	if s.N > 0 {
		b.full.span, b.full.units, b.full.frac = b.scaled(), s.N, 0
	}
	if missing += float64(more); missing > 0 {
		b.full.due = plus(now, ceil(missing/float64(b.full.units)*float64(b.full.span)))
	} else {
		b.full.due = min(b.full.due, now)
	}
}

// time is now, unless the rate is 0: then nothing flows in.
func (b *Bucket) time(now time.Duration) time.Duration {
	if b.spec.N == 0 {
		return b.stopped
	}
	return now
}

func (b *Bucket) scaled() time.Duration { return ceil(float64(b.spec.Per) * b.stretch) }

// Capacity implements Meter.
func (b *Bucket) Capacity() int64 {
	switch {
	case b.spec.N == 0:
		return 0
	case b.spec.Alone:
		return math.MaxInt64 / 4
	}
	return b.spec.Burst
}

// Ready implements Meter.
func (b *Bucket) Ready(now time.Duration, n int64) time.Duration {
	if b.spec.N == 0 || n > b.Capacity() {
		return Later
	}
	return max(now, b.full.ready(b.spec.Burst-n))
}

// Backlog implements Meter.
func (b *Bucket) Backlog(now time.Duration, ahead, n int64) time.Duration {
	if b.spec.N == 0 || n > b.Capacity() {
		return Later
	}
	n = min(n, b.spec.Burst)
	if early := b.spec.Burst - n - ahead; early >= 0 {
		return max(now, b.full.ready(early))
	}
	d, _ := b.full.length(ahead + n - b.spec.Burst)
	return max(now, plus(max(b.full.due, now-b.credit), d))
}

// Take implements Meter. A bucket does not tell a grant from a sending.
func (b *Bucket) Take(now time.Duration, n int64, onWire bool) Charge {
	now = b.time(now)
	b.forget(now)
	if b.log.len() >= many {
		// Memory is bounded where the bucket never fills: a later refund of
		// the oldest charge gives nothing.
		b.log.pop()
	}
	next := b.log.tail
	i := b.log.add(now, b.join, n, 0)
	if i == next {
		cell := b.log.newest()
		cell.due, cell.frac = b.full.due, b.full.frac
	}
	b.full.push(now, b.credit, n)
	return Charge{n: n, at: now, cell: i, mark: mark(0, true)}
}

// forget drops the charges that the bucket has made up for: once it is full,
// what was taken before changes nothing.
func (b *Bucket) forget(now time.Duration) {
	if b.full.due <= now-b.credit {
		b.log.head = b.log.tail
	}
}

// Sent implements Meter.
func (b *Bucket) Sent(time.Duration, *Charge) {}

// Settle implements Meter.
func (b *Bucket) Settle(now time.Duration, c *Charge, actual int64) {
	now = b.time(now)
	diff := actual - c.n
	c.n = actual
	b.Final(c)
	if diff > 0 {
		b.Take(now, diff, true)
		return
	}
	b.forget(now)
	if diff == 0 || !b.log.has(c.cell) {
		return
	}
	b.log.at(c.cell).cost += diff
	// Replay what came after it.
	b.full.due, b.full.frac = b.log.at(c.cell).due, b.log.at(c.cell).frac
	for i := c.cell; i != b.log.tail; i++ {
		cell := b.log.at(i)
		cell.due, cell.frac = b.full.due, b.full.frac
		if cell.cost > 0 {
			b.full.push(cell.last, b.credit, cell.cost)
		}
	}
}

// Free implements Meter.
func (b *Bucket) Free(now time.Duration) int64 {
	if now = b.time(now); b.full.due <= now {
		return b.spec.Burst
	}
	left := b.full.due - now
	level := b.spec.Burst - int64(float64(left)/float64(b.full.span)*float64(b.full.units))
	if left > Later/4 {
		return level // a debt of a century, where times are cut off
	}
	// The estimate may be off by a few; the exact arithmetic decides.
	for level < b.spec.Burst && b.full.ready(b.spec.Burst-level-1) <= now {
		level++
	}
	for b.full.ready(b.spec.Burst-level) > now {
		level--
	}
	return level
}

// Stretch implements Meter.
func (b *Bucket) Stretch(now time.Duration, factor float64) {
	b.stretch = factor
	if b.spec.N > 0 {
		b.full.respan(now, b.scaled(), b.spec.N)
		b.full.keep(b.spec.Burst, factor)
		b.log.head = b.log.tail
	}
}

// Rebase implements Meter.
func (b *Bucket) Rebase(now time.Duration) {
	b.log.head = b.log.tail
	b.stopped = now
	if b.full.due != fresh {
		b.full.due, b.full.frac = now, 0
		b.full.push(now, 0, b.spec.Burst)
	}
}

// Spent implements Meter.
func (b *Bucket) Spent(now time.Duration) []Spent {
	if n := b.spec.Burst - b.Free(now); n > 0 {
		return []Spent{{Units: n}}
	}
	return nil
}

// Restore implements Meter: what was spent flows in again from then on.
func (b *Bucket) Restore(now time.Duration, spent []Spent) {
	if b.spec.N == 0 {
		return
	}
	for _, s := range spent {
		at := now - min(max(s.Age, 0), 1000*24*time.Hour)
		b.full.push(at, 0, min(s.Units, b.spec.Burst))
	}
}
