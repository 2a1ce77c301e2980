package rate

import (
	"math"
	"math/bits"
	"time"
)

// clock counts ticks of the monotonic clock. A tick is the nanosecond, or up to
// two of them, such that a unit of the limit takes a whole number of ticks.
// Products have 128 bits: exact, whatever the limit.
type clock struct {
	base time.Time
	mul  uint64 // mul ticks in div nanoseconds; mul <= div
	div  uint64
}

// instant is a reading in ticks: the last one that has begun and the first one
// that begins not before it.
type instant struct {
	ns          uint64
	floor, ceil int64
}

// farAway is as many ticks as a wait may count: 73 years or more. Added to a
// time that is itself a century from now, it does not overflow.
const farAway = math.MaxInt64 / 4

// past is how long ago the clock is 0: in a synctest bubble it is the year
// 2000, and ticks are not negative.
const past = maxPer / 2

// newClock returns a clock of so many ticks per time.
func newClock(ticks int64, per time.Duration) clock {
	return clock{base: time.Now(), mul: uint64(ticks), div: uint64(per)}
}

func (c *clock) read() instant {
	ns := uint64(time.Since(c.base) + past)
	if c.mul == c.div {
		return instant{ns, int64(ns), int64(ns)}
	}
	hi, lo := bits.Mul64(ns, c.mul)
	q, r := bits.Div64(hi, lo, c.div)
	now := instant{ns, int64(q), int64(q)}
	if r > 0 {
		now.ceil++
	}
	return now
}

// until is how long it is from now to the tick at, rounded up to the first
// nanosecond that is not before it.
func (c *clock) until(now instant, at int64) time.Duration {
	ns := uint64(at)
	if c.mul != c.div {
		hi, lo := bits.Mul64(ns, c.div)
		q, r := bits.Div64(hi, lo, c.mul)
		if ns = q; r > 0 {
			ns++
		}
	}
	return max(time.Duration(ns-now.ns), 0)
}
