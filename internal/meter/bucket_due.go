package meter

import "time"

// A bucket of which nothing can be refunded is no more than the time at which
// it is full again, and may be kept as that by somebody else meanwhile.

// Spec returns what the bucket is configured to.
func (b *Bucket) Spec() BucketSpec { return b.spec }

// Credit is how late a start may be and keep its due time.
func (b *Bucket) Credit() time.Duration { return b.credit }

// Keep says that the charge may be refunded, until Final or Settle.
func (b *Bucket) Keep(c *Charge) {
	b.open++
	b.kept = c.cell + 1
}

// Final says that the charge will not be refunded any more.
func (b *Bucket) Final(c *Charge) {
	if b.open > 0 && b.log.has(c.cell) {
		b.open--
	}
}

// Due returns the time at which the bucket is full again and forgets all
// charges, if none of them may be refunded and that time is a whole nanosecond.
func (b *Bucket) Due() (due time.Duration, ok bool) {
	if b.open > 0 && b.kept > b.log.head || b.full.frac != 0 {
		return 0, false
	}
	b.open, b.log.head = 0, b.log.tail
	return b.full.due, true
}

// SetDue is the time at which the bucket is full again, after Due.
func (b *Bucket) SetDue(due time.Duration) { b.full.due = due }
