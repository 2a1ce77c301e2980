package meter

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestCalendar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A bubble starts at midnight UTC of 2000-01-01.
		c := NewCalendar(CalendarSpec{N: 3, Each: "day"})
		if r := c.Ready(0, 1); r != time.Second {
			t.Fatalf("at the turn of the day: ready at %v, want 1s", r)
		}
		time.Sleep(time.Hour)
		now := time.Hour
		var charges []Charge
		for range 3 {
			if c.Ready(now, 1) > now {
				t.Fatal("refused below the limit")
			}
			charges = append(charges, c.Take(now, 1, true))
		}
		if r := c.Ready(now, 1); r != 24*time.Hour+time.Second {
			t.Fatalf("next start at %v", r)
		}
		c.Settle(now, &charges[0], 0)
		if c.Free(now) != 1 {
			t.Fatalf("free after a refund: %d", c.Free(now))
		}
		spent := c.Spent(now)
		time.Sleep(23*time.Hour - 500*ms)
		if r := c.Ready(24*time.Hour-500*ms, 1); r != 24*time.Hour+time.Second {
			t.Fatalf("just before midnight: %v", r)
		}
		time.Sleep(2 * time.Second)
		c.Settle(24*time.Hour+1500*ms, &charges[1], 0)
		if c.Free(0) != 3 {
			t.Fatalf("a refund of yesterday counts today: %d", c.Free(0))
		}
		again := NewCalendar(CalendarSpec{N: 3, Each: "day"})
		again.Restore(0, spent)
		if again.Free(0) != 3 {
			t.Fatal("the use of yesterday was restored today")
		}
		// The clock was ahead once: the period never moves back.
		again.Restore(0, []Spent{{Units: 2, Period: time.Date(2000, 1, 5, 0, 0, 0, 0, time.UTC).Unix()}})
		if again.Free(0) != 1 {
			t.Fatalf("free is %d", again.Free(0))
		}
	})
}

// Where the clock is put forward at midnight the day begins at 1:00, and the day
// before does not end at 23:00 (golang/go#50223).
func TestCalendarWithoutMidnight(t *testing.T) {
	for name, first := range map[string]time.Time{
		"America/Sao_Paulo": time.Date(2000, 10, 8, 3, 0, 0, 0, time.UTC),
		"Africa/Cairo":      time.Date(2000, 4, 27, 22, 0, 0, 0, time.UTC),
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c := NewCalendar(CalendarSpec{N: 1, Each: "day", Zone: zone})
			at := func(wall time.Time) (now time.Duration) {
				time.Sleep(time.Until(wall))
				return time.Duration(wall.UnixNano() - first.UnixNano())
			}
			now := at(first.Add(-12 * time.Hour))
			c.Take(now, 1, true)
			for _, before := range []time.Duration{61 * time.Minute, 30 * time.Minute, time.Minute, ms} {
				if ready := c.Ready(at(first.Add(-before)), 1); ready != time.Second {
					t.Errorf("%s, %v before midnight: ready %v after it, want 1s", name, before, ready)
				}
			}
			now = at(first.Add(time.Second))
			if c.Ready(now, 1) > now {
				t.Errorf("%s: not ready in the new day", name)
			}
			c.Take(now, 1, true)
			for _, later := range []time.Duration{12 * time.Hour, 22*time.Hour + 30*time.Minute} {
				if ready := c.Ready(at(first.Add(later)), 1); ready != 23*time.Hour+time.Second {
					t.Errorf("%s, %v into the day of 23 hours: ready after %v", name, later, ready)
				}
			}
		})
	}
}

// A start that was granted before the turn and sent after it counts in both
// periods, however often that is told. What is settled of the period before is
// no longer of interest, unless it is more.
func TestCalendarTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCalendar(CalendarSpec{N: 5, Each: "month"})
		time.Sleep(30*24*time.Hour + 12*time.Hour) // the last day of January
		held, over := c.Take(0, 2, false), c.Take(0, 1, true)
		if got := c.Backlog(0, 2, 1); got != 12*time.Hour+time.Second {
			t.Errorf("1 behind 2 where 2 are free: %v", got)
		}
		if got := c.Backlog(0, 1, 1); got != 0 {
			t.Errorf("1 behind 1 where 2 are free: %v", got)
		}
		time.Sleep(24 * time.Hour)
		c.Sent(0, &held)
		c.Sent(0, &held)
		if got := c.Free(0); got != 3 {
			t.Errorf("%d free in February, want 3", got)
		}
		c.Settle(0, &over, 2)
		if got := c.Free(0); got != 2 {
			t.Errorf("%d free after a debt of January, want 2", got)
		}
		c.Settle(0, &held, 0)
		if got := c.Free(0); got != 4 {
			t.Errorf("%d free after the refund, want 4", got)
		}
		c.Take(0, 4, true)
		if got := c.Ready(0, 1); got != (29*24-12)*time.Hour+time.Second {
			t.Errorf("February 2000 ends in %v", got)
		}
	})
}

// A change of the number keeps the period and what was used; one of the kind
// carries the use into the new period.
func TestCalendarUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCalendar(CalendarSpec{N: 5, Each: "day"})
		time.Sleep(12 * time.Hour)
		c.Take(0, 3, true)
		c.Update(0, CalendarSpec{N: 4, Each: "day"})
		if got := c.Ready(0, 2); c.Free(0) != 1 || got != 12*time.Hour+time.Second {
			t.Errorf("%d free, 2 at %v", c.Free(0), got)
		}
		c.Update(0, CalendarSpec{N: 4, Each: "month"})
		if got := c.Ready(0, 2); c.Free(0) != 1 || got != (31*24-12)*time.Hour+time.Second {
			t.Errorf("by the month: %d free, 2 at %v", c.Free(0), got)
		}
	})
}

// Where the clock was ahead when the state was written, its period goes on: it
// is not closed, and what was used stays so until that period ends.
func TestCalendarOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCalendar(CalendarSpec{N: 3, Each: "day"})
		time.Sleep(time.Hour)
		c.Restore(0, []Spent{{Units: 2, Period: time.Date(2000, 1, 5, 0, 0, 0, 0, time.UTC).Unix()}})
		if got := c.Ready(0, 1); got != 0 {
			t.Errorf("ready at %v", got)
		}
		for range 4 {
			if got := c.Free(0); got != 1 {
				t.Errorf("%v: %d free", time.Now(), got)
			}
			time.Sleep(24 * time.Hour)
		}
		time.Sleep(24 * time.Hour)
		if got := c.Free(0); got != 3 {
			t.Errorf("after its end %d are free", got)
		}
	})
}
