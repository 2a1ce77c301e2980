package rate

import (
	"strings"
	"testing"
	"time"
)

// Waits and refills go by the monotonic clock, which no step of the wall clock
// touches (tomasbasham/ratelimit#11, samm-git/btest-opensource#13).
func TestClockIsMonotonic(t *testing.T) {
	l, err := New(Bucket{N: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.base.String(); !strings.Contains(s, " m=") {
		t.Fatalf("the base %s has no monotonic reading", s)
	}
}

// A reading of the clock that is old by the time the lock is free is not taken
// for a clock that runs backwards.
func TestOldReading(t *testing.T) {
	l, err := New(Window{N: 10, Per: time.Minute, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	l.base = l.base.Add(-time.Hour)
	old := l.clock() - 10*time.Second
	l.Allow(10)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.at(old); now < l.clock()-time.Second {
		t.Fatalf("time went back to %v", now)
	}
	if at := l.meter.Ready(l.last, 1); at < time.Hour+time.Minute {
		t.Fatalf("the window opens at %v", at)
	}
}

// A clock that jumps back closes nothing for longer than a window.
func TestClockRunsBackwards(t *testing.T) {
	l, err := New(Window{N: 1, Per: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	base := l.base
	l.base = base.Add(-30 * 365 * 24 * time.Hour) // as in a bubble
	if !l.Allow(1) || l.Allow(1) || l.Allow(1) {
		t.Fatal("one may start")
	}
	l.base = base
	if l.Allow(1) {
		t.Fatal("what is booked was forgotten")
	}
	if d, _ := l.Peek(1); d > 2*time.Minute {
		t.Fatalf("closed for %v", d)
	}
}

// The timer is there while somebody waits, and only then.
func TestNoTimerIsLeft(t *testing.T) {
	l, err := New(Bucket{N: 1000, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := l.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		t.Fatal("a timer is left")
	}
}
