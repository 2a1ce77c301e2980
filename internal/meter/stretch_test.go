package meter

import (
	"testing"
	"time"
)

// together is how many units start at once at now.
func together(m Meter, now time.Duration) (n int64) {
	for m.Ready(now, 1) <= now {
		m.Take(now, 1, true)
		n++
	}
	return n
}

// While a provider opens again a part of a burst goes together, and all of it
// once that is over.
func TestStretchDividesBursts(t *testing.T) {
	for name, fresh := range map[string]func() Meter{
		"window": func() Meter { return NewWindow(WindowSpec{N: 80, Per: 8 * s, Paced: true, Burst: 8}) },
		"bucket": func() Meter { return NewBucket(BucketSpec{N: 80, Per: 8 * s, Burst: 8}) },
	} {
		for factor, want := range map[float64]int64{1: 8, 2: 4, 4: 2, 3: 3, 100: 1} {
			m := fresh()
			m.Take(0, 1, true)
			now := 100 * s
			m.Stretch(now, factor)
			if got := together(m, now); got != want {
				t.Errorf("%s, stretched %v times: %d go together, want %d", name, factor, got, want)
			}
			next := m.Ready(now, 1) - now
			if step := time.Duration(factor * float64(100*ms)); next < step || next > step+step/100 {
				t.Errorf("%s, stretched %v times: the next after %v", name, factor, next)
			}
			m.Stretch(now, 1)
			now += 100 * s
			if got := together(m, now); got != 8 {
				t.Errorf("%s, no longer stretched: %d go together, want 8", name, got)
			}
			if w, ok := m.(*Window); ok {
				w.Stretch(now, factor)
				now += 100 * s
				w.Update(now, w.spec)
				if got := together(m, now); got != 8 {
					t.Errorf("%s, updated: %d go together, want 8", name, got)
				}
			}
		}
	}
}

// After a stretch nothing that was taken before it changes the bucket: what it
// has made up for since cannot be told.
func TestRefundAfterStretch(t *testing.T) {
	b := NewBucket(BucketSpec{N: 10, Per: 10 * s, Burst: 10})
	c := b.Take(0, 10, true)
	b.Stretch(5*s, 4)
	b.Settle(5*s, &c, 9)
	if free := b.Free(5 * s); free != 5 {
		t.Errorf("%d free, want the 5 that had flowed in", free)
	}
}

// After the clock has gone back all that was booked counts as booked now.
func TestRebase(t *testing.T) {
	b := NewBucket(BucketSpec{N: 10, Per: s, Burst: 10})
	b.Take(time.Hour, 1, true)
	b.Rebase(s)
	if free := b.Free(s); free != 0 {
		t.Errorf("bucket: %d free", free)
	}
	if free := b.Free(2 * s); free != 10 {
		t.Errorf("bucket: %d free after a second", free)
	}
	w := NewWindow(WindowSpec{N: 10, Per: s, Margin: 5 * ms, Paced: true})
	w.Take(time.Hour, 4, true)
	w.Rebase(s)
	if free := w.Free(2*s + 5*ms - 1); free != 6 {
		t.Errorf("window: %d free before it has passed", free)
	}
	if ready := w.Ready(s, 1); ready > s {
		t.Errorf("window: the pace stands still until %v", ready)
	}
	if free := w.Free(2*s + 5*ms); free != 10 {
		t.Errorf("window: %d free after it has passed", free)
	}
}
