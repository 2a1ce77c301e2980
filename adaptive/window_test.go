package adaptive

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestSampleOfALargeWindowIsFairBoundedAndRepeatable(t *testing.T) {
	fill := func(seed uint64) *window {
		w, random := new(window), rand.New(rand.NewPCG(seed, 1))
		w.reopen(0, 0)
		for i := range 100000 {
			w.add(float64(i), random)
		}
		return w
	}
	one, again, other := fill(1), fill(1), fill(2)
	if len(one.sample) != kept || !slices.Equal(one.sample, again.sample) || slices.Equal(one.sample, other.sample) {
		t.Errorf("%d latencies are kept; of the same calls the same: %v, whatever the seed: %v", len(one.sample),
			slices.Equal(one.sample, again.sample), slices.Equal(one.sample, other.sample))
	}
	s := one.summary(time.Second)
	if s.n != 100000 || s.mean != 49999.5 || s.median < 50000-4*s.se || s.median > 50000+4*s.se || s.se > 4000 {
		t.Errorf("%+v", s)
	}
}

func TestMedianAndItsError(t *testing.T) {
	for _, c := range []struct {
		sorted     []float64
		median, se float64
	}{
		{[]float64{3}, 3, 3},
		{[]float64{1, 3}, 2, 2 / 1.4142135623730951},
		{[]float64{1, 2, 3, 4}, 2.5, 1},                                           // ranks 0.5 and 2.5 of 0 to 3
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 7.5, 2}, // 5.5 and 9.5 of 0 to 15
	} {
		if m, se := median(c.sorted); m != c.median || se != c.se {
			t.Errorf("%v: %v ± %v, not %v ± %v", c.sorted, m, se, c.median, c.se)
		}
	}
}

// However long all went well, no more than a few failures beyond the tolerated
// share are free.
func TestFailuresAreNotSavedUp(t *testing.T) {
	f := failure{tolerance: tolerance, budget: burst}
	for range 100_000 {
		f.success(Ticket{})
	}
	l := &Limiter{}
	n := 0
	for ; f.budget >= 0 && n < 100; n++ {
		f.failure(l, Ticket{})
	}
	if n > burst+1 {
		t.Errorf("%d failures in a row cost nothing", n)
	}
}
