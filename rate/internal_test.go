package rate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
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
	l.base = base.Add(-2 * time.Minute)
	if !l.Allow(1) {
		t.Fatal("closed for longer than a window")
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

// A refused Allow takes no lock, whatever is asked for, alone or while others
// are in line: here somebody else has the lock.
func TestRefusalTakesNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Bucket{N: 1, Per: time.Hour, Burst: 10})
		if err != nil {
			t.Fatal(err)
		}
		refused := func(n int64) {
			t.Helper()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.Allow(n) {
				t.Fatalf("allowed %d", n)
			}
		}
		l.Allow(6)
		l.Allow(5)
		refused(5)
		refused(10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Wait(ctx, 8) }()
		synctest.Wait()
		refused(1)
		cancel()
		<-done
		if !l.Allow(4) {
			t.Fatal("4 are free")
		}
	})
}

// A bucket needs no lock while nobody waits and nothing can be given back, and
// gets there again: also when a grant is never settled, once the bucket was full.
func TestBucketWithoutLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Bucket{N: 1, Per: time.Second, Burst: 10})
		if err != nil {
			t.Fatal(err)
		}
		open := func(want bool) {
			t.Helper()
			if got := l.quick.Load().state.Load()&closed == 0; got != want {
				t.Fatalf("open is %v", got)
			}
		}
		open(true)
		g, _ := l.Take(t.Context(), 10)
		open(false)
		g.Settle(8)
		open(true)
		done := make(chan error)
		go func() { done <- l.Wait(t.Context(), 5) }()
		synctest.Wait()
		open(false)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		open(true)
		g, _ = l.Take(t.Context(), 1)
		time.Sleep(time.Minute)
		open(false)
		l.Allow(1)
		open(true) // it was full, so what came before is final
		time.Sleep(time.Minute)
		g.Settle(5) // changes nothing but what is charged beyond
		open(true)
		if s := l.Stats(); s.Free != 6 {
			t.Fatalf("%+v", s)
		}
		g, _ = l.Take(t.Context(), 1)
		g.Settle(20) // a debt
		open(false)
		time.Sleep(time.Minute)
		l.Stats()
		open(true)
		if err := l.Set(Bucket{N: 3, Per: time.Second}); err != nil || l.quick.Load() != nil {
			t.Fatal("a third of a second has no word", err)
		}
		if err := l.Set(Bucket{N: 2, Per: time.Second}); err != nil {
			t.Fatal(err)
		}
		open(true)
	})
}

// endedContext has ended by the time that a grant wakes its waiter.
type endedContext struct {
	context.Context
	looks int
}

func (c *endedContext) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// Where a grant and the end of the context come together, the context decides
// and the grant goes to the next in line at once (golang/go#63615).
func TestContextDecides(t *testing.T) {
	for _, limit := range []Limit{Bucket{N: 1, Per: time.Second}, Window{N: 1, Per: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			l, err := New(limit)
			if err != nil {
				t.Fatal(err)
			}
			l.Allow(1)
			first := make(chan error)
			go func() { first <- l.Wait(&endedContext{Context: t.Context()}, 1) }()
			synctest.Wait()
			begin := time.Now()
			due, _ := l.Peek(1)
			due -= time.Second // one unit less, for the one ahead
			if w, ok := limit.(Window); ok {
				due -= w.Per / 150
			}
			second := make(chan error)
			go func() { second <- l.Wait(t.Context(), 1) }()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := <-second; err != nil || time.Since(begin) > due+ms {
				t.Fatalf("%v after %v, want %v", err, time.Since(begin), due)
			}
		})
	}
}

const ms = time.Millisecond

// The last place is given without a look for keys to forget, which may find the
// next part locked and would then leave the key without a place.
func TestKeyedLastPlace(t *testing.T) {
	const places = 64
	k, err := NewKeyed(Bucket{N: 1, Per: time.Hour, Burst: 1}, places)
	if err != nil {
		t.Fatal(err)
	}
	for i := range places {
		_, s := k.find(strconv.Itoa(i))
		k.hand.Store(0)
		other := &k.shards[1%len(k.shards)] // whose turn it is to be looked through
		if other == s {
			k.hand.Store(1)
			other = &k.shards[0]
		}
		other.mu.Lock()
		ok, _ := k.Allow(strconv.Itoa(i), 1)
		other.mu.Unlock()
		if st := k.Stats(); !ok || st.Keys != i+1 || st.Overflowed != 0 {
			t.Fatalf("key %d of %d places: %v, %+v", i+1, places, ok, st)
		}
	}
}
