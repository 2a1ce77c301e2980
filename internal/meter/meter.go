// Package meter is the arithmetic of one limit: how much of it is used, when
// the next units may start, and what a settlement changes.
//
// A meter neither locks nor waits nor reads the monotonic clock. Whoever owns
// it (a rate.Limiter, a Gate) holds a lock around every call and passes the
// time since an instant of its own choosing. That time must not run backwards;
// see Rebase.
package meter

import (
	"math"
	"time"
)

// Later is the time that Ready answers when no clock can tell: something must
// be sent, settled, refunded or changed first.
const Later = time.Duration(math.MaxInt64)

// fresh is a due time in the past of every clock.
const fresh = time.Duration(math.MinInt64 / 2)

// Catchup is how late a grant may be and still keep its theoretical time, so
// that the lateness of a timer does not add up to a lower rate.
const Catchup = 5 * time.Millisecond

// movedAfter is how long a start may take from its grant to the wire and still
// count from the grant. The margin of a window covers it.
const movedAfter = 250 * time.Microsecond

// Charge remembers where a cost was booked, so that it can move to the instant
// of its sending, be settled or be refunded exactly. The zero Charge is none.
type Charge struct {
	n    int64
	at   time.Duration
	cell uint64 // absolute index of a cell, or the number of a calendar period
	mark uint64 // twice what the window held with it when it was booked, and 1 once on the wire
}

// Four fields and no more, so that a Charge is returned in registers.

func mark(used int64, onWire bool) uint64 {
	m := uint64(max(used, 0)) << 1
	if onWire {
		m |= 1
	}
	return m
}

func (c *Charge) onWire() bool { return c.mark&1 != 0 }

func (c *Charge) toWire() { c.mark |= 1 }

// Units returns what is charged.
func (c *Charge) Units() int64 { return c.n }

// At is the instant at which it is booked.
func (c *Charge) At() time.Duration { return c.at }

// Used is how many units, its own included, had started in the window that
// ended when it was booked; 0 if the meter keeps none.
func (c *Charge) Used() int64 { return int64(c.mark >> 1) }

// Serial is the number of its last unit among all that an Allowance counted.
func (c *Charge) Serial() int64 { return int64(c.cell) }

// Meter is one limit. Costs are positive.
type Meter interface {
	// Capacity is the largest cost that can ever be taken at once; 0 means
	// that nothing is admitted.
	Capacity() int64
	// Ready is the earliest time at which n units could start if nothing else
	// happens; not after now means now.
	Ready(now time.Duration, n int64) time.Duration
	// Backlog is a lower bound of the time at which n units could start that
	// queue behind others of the cost ahead. It takes constant time.
	Backlog(now time.Duration, ahead, n int64) time.Duration
	// Take charges n units. onWire says that they start now; otherwise they
	// count as lying in every window until Sent or Settle. Ready must have
	// said so, else the meter goes into debt.
	Take(now time.Duration, n int64, onWire bool) Charge
	// Sent moves the charge to the instant at which it went to the wire.
	Sent(now time.Duration, c *Charge)
	// Settle replaces the cost of the charge. A refund returns to the instant
	// of the charge, a debt is charged now. Settle to 0 undoes the charge.
	Settle(now time.Duration, c *Charge, actual int64)
	// Free is how many units could be taken if they were not paced; negative
	// is debt.
	Free(now time.Duration) int64
	// Stretch multiplies the distance between paced starts, and divides what
	// may go together; 1 is nominal.
	Stretch(now time.Duration, factor float64)
	// Rebase tells that the clock jumped back to now: whatever was booked
	// counts as booked now.
	Rebase(now time.Duration)
	// Spent lists what is in force, for durable state; Restore books it in a
	// new meter.
	Spent(now time.Duration) []Spent
	Restore(now time.Duration, spent []Spent)
}

// Spent is a part of a quota that is used up: Units, Age before now. For a
// calendar it is the whole use of the period that starts at Period (Unix
// seconds).
type Spent struct {
	Age    time.Duration `json:"age_ns,omitempty"`
	Units  int64         `json:"units"`
	Period int64         `json:"period,omitempty"`
}
