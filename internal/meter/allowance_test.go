package meter

import (
	"math"
	"testing"
	"time"
)

// The window after the one that was spoken of is not believed for longer than
// any other statement, however long it is said to be.
func TestNextWindowIsDoubtedToo(t *testing.T) {
	a := NewAllowance()
	a.Say(0, Remainder{Most: 0, Reset: time.Second, Limit: 1, Window: 277 * time.Hour})
	now := 2 * time.Second
	a.Take(now, 1, true)
	if at := a.Ready(now, 1); at > now+Doubt {
		t.Errorf("one unit waits %v", at-now)
	}
}

// told returns an allowance of which used units were taken before r was said.
func told(used int64, r Remainder) *Allowance {
	a := NewAllowance()
	if used > 0 {
		a.Take(0, used, true)
	}
	r.Most += used
	a.Say(0, r)
	return a
}

func (a *Allowance) expect(t *testing.T, now time.Duration, free int64, ready time.Duration) {
	t.Helper()
	if got := a.Free(now); got != free {
		t.Errorf("at %v: %d free, want %d", now, got, free)
	}
	if got := a.Ready(now, 1); max(got, now) != ready {
		t.Errorf("at %v: ready at %v, want %v", now, got, ready)
	}
}

const s = time.Second

// Without a length of the window its end lifts what was said, to the instant.
func TestRemainderEnds(t *testing.T) {
	a := told(7, Remainder{Most: 2, Reset: 10 * s})
	a.expect(t, s, 2, s)
	a.Take(s, 2, true)
	a.expect(t, s, 0, 10*s)
	a.expect(t, 10*s-1, 0, 10*s)
	if len(a.Spent(10*s-1)) == 0 || len(a.Spent(10*s)) != 0 {
		t.Error("it is in force after its end, or not before")
	}
	a.Say(11*s, Remainder{Reset: 11 * s})
	a.expect(t, 11*s, math.MaxInt64/4, 11*s)
}

// What is left over in one window is not there in the next, and windows go on
// where the first one ended, for as long as somebody speaks of them.
func TestNextWindows(t *testing.T) {
	r := Remainder{Most: 3, Reset: 10 * s, Limit: 5, Window: 10 * s}
	a := told(0, r)
	a.Take(s, 1, true)
	a.expect(t, 10*s, 5, 10*s)
	a.Take(10*s, 5, true)
	a.expect(t, 10*s, 0, 20*s)
	a.Take(45*s, 5, true) // some windows later
	a.expect(t, 45*s, 0, 50*s)
	a = told(0, r)
	a.expect(t, r.Window+2*Doubt, math.MaxInt64/4, r.Window+2*Doubt)
}

// A remainder of nothing that ended unseen, its doubt included, is the next
// window and no doubt.
func TestWindowEndsBeyondDoubt(t *testing.T) {
	a := told(0, Remainder{Reset: Doubt + s, Limit: 5, Window: Doubt})
	now := Doubt + 2*s
	if got := a.Ready(now, 5); got > now || a.Doubtful() {
		t.Errorf("5 of the next 5 are ready at %v, doubtful %v", got, a.Doubtful())
	}
	a = told(0, Remainder{Reset: Doubt + s, Limit: 5, Window: Doubt})
	a.expect(t, Doubt, 1, Doubt)
	if !a.Doubtful() || a.Free(Doubt+s) != 5 || a.Doubtful() {
		t.Error("the doubt does not end with the window")
	}
	a = told(0, Remainder{Reset: time.Hour})
	a.expect(t, Doubt, 1, Doubt)
	if !a.Doubtful() || a.Said() != Doubt {
		t.Errorf("in doubt: %v, since %v", a.Doubtful(), a.Said())
	}
	a.Take(Doubt, 1, true)
	a.expect(t, Doubt, 0, 2*Doubt)
	a.Say(Doubt+s, Remainder{Most: 1, Reset: time.Hour})
	if a.Doubtful() {
		t.Error("what was just said is in doubt")
	}
	a.expect(t, 2*Doubt, 0, 2*Doubt+s)
}

// A bucket's units flow back, never above its limit, and from the instant of
// the statement.
func TestUnitsFlowBack(t *testing.T) {
	a := told(0, Remainder{Reset: 100 * s, Limit: 5, Each: s})
	a.expect(t, s/2, 0, s)
	a.expect(t, 2*s+s/2, 2, 2*s+s/2)
	if got := a.Backlog(2*s+s/2, 1, 2); got != 3*s {
		t.Errorf("2 behind 1 at %v, want 3s", got)
	}
	a.expect(t, 50*s, 5, 50*s)
	a.Take(50*s, 5, true)
	a.expect(t, 50*s, 0, 51*s) // the 45 that it could not hold are lost
	if got := a.Backlog(0, 0, 9); got > 100*s {
		t.Errorf("more than the limit is never ready: %v", got)
	}
}

// A call that was charged before the provider spoke is in what it said; its
// settlement changes nothing. One that was charged later is settled, once.
func TestSettledAfterTheStatement(t *testing.T) {
	a := NewAllowance()
	before := a.Take(0, 3, true)
	a.Say(s, Remainder{Most: a.Total() + 4, Reset: time.Minute})
	a.Settle(2*s, &before, 0)
	a.expect(t, 2*s, 4, 2*s)
	after := a.Take(2*s, 3, true)
	a.Settle(3*s, &after, 1)
	a.expect(t, 3*s, 3, 3*s)
	a.Settle(3*s, &after, 1)
	a.expect(t, 3*s, 3, 3*s)
	if after.Units() != 1 {
		t.Errorf("charged %d", after.Units())
	}
}
