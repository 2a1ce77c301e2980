package adaptive

import (
	"math"
	"time"
)

// ceiling is a bound that failures taught. It is held for a while, then tried
// in growing steps upwards. A step that fails goes back, to hold twice as
// long; one far enough up lifts the ceiling.
type ceiling struct {
	level float64 // what held; 0 is no ceiling
	step  float64 // how far above it is being tried; 0 while holding
	hold  time.Duration
	until time.Duration
	bound bool // the step has been used to the full
}

// top is the most that may be.
func (c *ceiling) top() float64 {
	if c.level == 0 {
		return math.Inf(1)
	}
	return c.level + c.step
}

func (c *ceiling) trying() bool { return c.step > 0 }

func (c *ceiling) due() time.Duration {
	if c.level == 0 {
		return never
	}
	return c.until
}

// set holds a level for a time, give or take a tenth: processes that were cut
// together do not try together.
func (c *ceiling) set(l *Limiter, now time.Duration, level float64, hold time.Duration) {
	jitter := 0.9 + 0.2*l.random.Float64()
	*c = ceiling{level: level, hold: hold, until: now + time.Duration(jitter*float64(hold))}
}

// raise begins the next step when the last one, or the hold, has gone well;
// least is the smallest step and most the one that, once held, lifts the ceiling.
func (c *ceiling) raise(now time.Duration, least, most float64, trial time.Duration) {
	switch {
	case c.step == 0:
		c.step = least
	case c.step >= most:
		*c = ceiling{}
		return
	default:
		c.step *= 2
	}
	c.bound = false
	c.until = now + trial
}
