package meter

import (
	"fmt"
	"time"
)

// CalendarSpec describes a Calendar: N units per day or month of Zone.
type CalendarSpec struct {
	N    int64
	Each string // "day" or "month"
	Zone *time.Location
}

// edge is how far from the turn of a period nothing is admitted, because the
// provider's clock is not ours.
const edge = time.Second

// Calendar admits at most N units per calendar period. It reads the wall
// clock, and a period never moves back.
type Calendar struct {
	spec       CalendarSpec
	start, end time.Time // the period in force
	used       int64
}

// NewCalendar returns an unused calendar limit.
func NewCalendar(s CalendarSpec) *Calendar {
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	return &Calendar{spec: s}
}

// Update changes the limit. The use stays booked unless the kind of period
// changes, in which case it is carried into the new one.
func (c *Calendar) Update(_ time.Duration, s CalendarSpec) {
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	same := s.Each == c.spec.Each && s.Zone.String() == c.spec.Zone.String()
	c.spec = s
	if !same {
		c.start, c.end = c.period(time.Now())
	}
}

// period is that in which t lies.
func (c *Calendar) period(t time.Time) (start, end time.Time) {
	year, month, day := t.In(c.spec.Zone).Date()
	if c.spec.Each == "month" {
		return c.midnight(year, month, 1), c.midnight(year, month+1, 1)
	}
	return c.midnight(year, month, day), c.midnight(year, month, day+1)
}

// midnight is the first instant of a day. Where the clock is put forward at
// 0:00 there is none, and time.Date may answer 23:00 of the day before.
func (c *Calendar) midnight(year int, month time.Month, day int) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, c.spec.Zone)
	if t.Hour() >= 12 {
		_, t = t.ZoneBounds()
	}
	return t
}

// turn begins a new period if the wall clock says so.
func (c *Calendar) turn(wall time.Time) {
	if wall.Before(c.end) {
		return
	}
	c.start, c.end = c.period(wall)
	c.used = 0
}

// Capacity implements Meter.
func (c *Calendar) Capacity() int64 { return c.spec.N }

// Ready implements Meter.
func (c *Calendar) Ready(now time.Duration, n int64) time.Duration {
	if n > c.spec.N {
		return Later
	}
	wall := time.Now().Round(0)
	c.turn(wall)
	switch {
	case c.used+n > c.spec.N || !wall.Before(c.end.Add(-edge)):
		return plus(now, c.end.Add(edge).Sub(wall))
	case wall.Before(c.start.Add(edge)) && !wall.Before(c.start):
		return plus(now, c.start.Add(edge).Sub(wall))
	}
	return now
}

// Backlog implements Meter.
func (c *Calendar) Backlog(now time.Duration, ahead, n int64) time.Duration {
	if n > c.spec.N {
		return Later
	}
	if c.used+ahead+n > c.spec.N {
		return c.Ready(now, c.spec.N)
	}
	return c.Ready(now, n)
}

// Take implements Meter.
func (c *Calendar) Take(now time.Duration, n int64, onWire bool) Charge {
	c.turn(time.Now().Round(0))
	c.used += n
	return Charge{n: n, at: now, cell: uint64(c.start.Unix()), mark: mark(0, onWire)}
}

// Sent implements Meter. A start that crossed the turn counts in both periods.
func (c *Calendar) Sent(_ time.Duration, ch *Charge) {
	if ch.onWire() {
		return
	}
	ch.toWire()
	c.turn(time.Now().Round(0))
	if now := uint64(c.start.Unix()); ch.cell != now {
		c.used += ch.n
		ch.cell = now
	}
}

// Settle implements Meter.
func (c *Calendar) Settle(_ time.Duration, ch *Charge, actual int64) {
	c.turn(time.Now().Round(0))
	if diff := actual - ch.n; diff > 0 || ch.cell == uint64(c.start.Unix()) {
		c.used += diff
	}
	ch.n = actual
	ch.toWire()
}

// Free implements Meter.
func (c *Calendar) Free(time.Duration) int64 {
	c.turn(time.Now().Round(0))
	return c.spec.N - c.used
}

// Stretch implements Meter: a calendar is not paced.
func (c *Calendar) Stretch(time.Duration, float64) {}

// Rebase implements Meter: a calendar does not use that clock.
func (c *Calendar) Rebase(time.Duration) {}

// Spent implements Meter.
func (c *Calendar) Spent(time.Duration) []Spent {
	c.turn(time.Now().Round(0))
	if c.used == 0 {
		return nil
	}
	return []Spent{{Units: c.used, Period: c.start.Unix()}}
}

// Restore implements Meter.
func (c *Calendar) Restore(_ time.Duration, spent []Spent) {
	c.turn(time.Now().Round(0))
	for _, s := range spent {
		switch start := time.Unix(s.Period, 0); {
		case start.Equal(c.start):
			c.used += s.Units
		case start.After(c.start):
			// The clock was ahead when this was written: stay in that period.
			c.start, c.end = c.period(start)
			c.used = s.Units
		}
	}
}

// String names the period in force, for messages.
func (c *Calendar) String() string {
	return fmt.Sprintf("%d until %s", c.spec.N-c.used, c.end.Format(time.RFC3339))
}
