package semaphore_test

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/semaphore"
)

// golang/sync#7: more than the limit never fits, so it does not wait; nor does
// it when the limit falls below what it waits for.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(5)
		for n, want := range map[int64]error{
			6: semaphore.ErrTooLarge, semaphore.MaxLimit: semaphore.ErrTooLarge, math.MaxInt64: semaphore.ErrTooLarge,
			0: semaphore.ErrWeight, -1: semaphore.ErrWeight, math.MinInt64: semaphore.ErrWeight,
		} {
			if _, err := s.Acquire(t.Context(), n); !errors.Is(err, want) {
				t.Errorf("Acquire(%d): %v", n, err)
			}
			if _, err := s.AcquireWithin(t.Context(), n, time.Second); !errors.Is(err, want) {
				t.Errorf("AcquireWithin(%d): %v", n, err)
			}
			if _, ok := s.TryAcquire(n); ok {
				t.Errorf("TryAcquire(%d)", n)
			}
			counts(t, s, 0, 0)
		}

		p := must(t, s, 3)
		q := must(t, s, 2)
		one := acquired(t.Context(), s, 1)
		four := acquired(t.Context(), s, 4)
		behind := acquired(t.Context(), s, 1)
		s.Resize(3)
		err := failed(t, four)
		var r *semaphore.Refusal
		if !errors.As(err, &r) || r.Reason != semaphore.ErrTooLarge || r.Limit != 3 || r.Weight != 4 || r.InUse != 5 || r.Waiting != 3 {
			t.Fatalf("%#v", err)
		}
		inLine(t, one, behind)
		p.Release()
		granted(t, one).Release()
		granted(t, behind).Release()
		q.Release()
		counts(t, s, 0, 0)
	})
}

// agronholm/anyio#1223: after a shrink, a part of it taken back grants only
// what there is room for.
func TestRaiseWhileOverSubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(4)
		var held []semaphore.Permit
		for range 4 {
			held = append(held, must(t, s, 1))
		}
		a, b, c := acquired(t.Context(), s, 1), acquired(t.Context(), s, 1), acquired(t.Context(), s, 1)
		s.Resize(1)
		s.Resize(3)
		inLine(t, a, b, c)
		counts(t, s, 4, 3)
		held[0].Release()
		inLine(t, a, b, c)
		counts(t, s, 3, 3)
		held[1].Release()
		p := granted(t, a)
		inLine(t, b, c)
		counts(t, s, 3, 2)
		p.Release()
		held[2].Release()
		held[3].Release()
		granted(t, b).Release()
		granted(t, c).Release()
		counts(t, s, 0, 0)
	})
}

// agronholm/anyio#646, golang/go#29721: raising the limit serves the line.
func TestRaiseWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		must(t, s, 1)
		a, b := acquired(t.Context(), s, 1), acquired(t.Context(), s, 1)
		s.Resize(3)
		granted(t, a)
		granted(t, b)
		counts(t, s, 3, 0)
	})
}

// Lowering never blocks and takes nothing away; a waiter that no longer fits
// does not block those behind it.
func TestShrinkBelowInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(10)
		p := must(t, s, 8)
		five, one := acquired(t.Context(), s, 5), acquired(t.Context(), s, 1)
		s.Resize(3)
		if err := failed(t, five); !errors.Is(err, semaphore.ErrTooLarge) {
			t.Fatal(err)
		}
		counts(t, s, 8, 1)
		if _, ok := s.TryAcquire(1); ok {
			t.Fatal("granted above the limit")
		}
		p.Release()
		granted(t, one).Release()
		counts(t, s, 0, 0)
	})
}

// A permit that is parked when the limit falls is not one more.
func TestShrinkWithFreePermit(t *testing.T) {
	s := semaphore.New(2)
	a := must(t, s, 1)
	b := must(t, s, 1)
	a.Release()
	s.Resize(1)
	if _, ok := s.TryAcquire(1); ok {
		t.Fatal("granted above the limit")
	}
	b.Release()
	must(t, s, 1).Release()
	s.Resize(0)
	if _, err := s.Acquire(t.Context(), 1); !errors.Is(err, semaphore.ErrTooLarge) {
		t.Fatal(err)
	}
	s.Resize(-3)
	if st := s.Stats(); st.Limit != 0 || st.InUse != 0 {
		t.Fatalf("%+v", st)
	}
	s.Resize(math.MaxInt64)
	p := must(t, s, semaphore.MaxLimit)
	p.Release()
	counts(t, s, 0, 0)
}
