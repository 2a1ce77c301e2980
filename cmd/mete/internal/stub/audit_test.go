package stub

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fullest is the slow oracle: the most times in any (t-per, t], and how many t
// end a window above the limit.
func fullest(times []int64, per, limit int64) (most, over int64) {
	sorted := slices.Sorted(slices.Values(times))
	for j, end := range sorted {
		held := int64(0)
		for _, t := range sorted[:j+1] {
			if t > end-per {
				held++
			}
		}
		most = max(most, held)
		if held > limit {
			over++
		}
	}
	return most, over
}

func TestMaxStartsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 6).Draw(t, "limit")
		var c counts
		c.setWindows([]Limit{{limit, 10}, {limit + 5, 10}, {limit, 35}}, []time.Duration{1, 10})
		times := rapid.SliceOf(rapid.Int64Range(1, 120)).Draw(t, "times")
		for _, at := range times {
			c.arrive(at)
		}
		for _, w := range c.windows {
			bound := w.limit
			if bound < 0 {
				bound = 1 << 60
			}
			most, over := fullest(times, int64(w.per), bound)
			if w.most != most || w.over != over {
				t.Fatalf("window %d: most %d over %d, want %d and %d", w.per, w.most, w.over, most, over)
			}
		}
		if len(times) > 0 && (c.first != slices.Min(times) || c.last != slices.Max(times)) {
			t.Fatalf("first %d, last %d of %v", c.first, c.last, times)
		}
	})
}

// A long record in slightly wrong order, with the old part forgotten on the way.
func TestMaxStartsOfALongRecord(t *testing.T) {
	const per = 5000
	l := ledger{keep: 2 * per}
	l.counts.setWindows([]Limit{{1 << 40, per}}, nil)
	l.counts.generation = 1
	l.faults.next = forGood
	var times []int64
	at := int64(0)
	for i := range 40_000 {
		at += int64(i * i % 7)
		jitter := int64(i * 31 % 11)
		times = append(times, at+20-jitter)
		l.arrive(at+20-jitter, nil, nil)
	}
	slices.Sort(times)
	most, lo := 0, 0
	for j, end := range times {
		for times[lo] <= end-per {
			lo++
		}
		most = max(most, j+1-lo)
	}
	if got := l.counts.windows[0].most; got != int64(most) {
		t.Fatalf("most %d, want %d", got, most)
	}
	if n := l.counts.arrivals.n; n > 4*chunk {
		t.Fatalf("%d of %d arrivals kept; the old ones should be forgotten", n, len(times))
	}
}

func TestHalfOpenWindow(t *testing.T) {
	var c counts
	c.setWindows([]Limit{{1, time.Second}}, nil)
	c.arrive(1)
	c.arrive(1 + int64(time.Second)) // exactly one window later: not in the same
	if w := c.windows[0]; w.most != 1 || w.over != 0 {
		t.Fatalf("most %d over %d, want 1 and 0", w.most, w.over)
	}
	c.arrive(int64(time.Second)) // a nanosecond less
	if w := c.windows[0]; w.most != 2 || w.over != 2 {
		t.Fatalf("most %d over %d, want 2 and 2", w.most, w.over)
	}
}

func TestRepeatsAndDuplicates(t *testing.T) {
	var l ledger
	l.init(Config{}, time.Now())
	end := func(o outcome, e ending, request, key uint64) {
		l.inFlight, l.serving = l.inFlight+1, l.serving+1
		o.generation, o.accepted = l.counts.generation, true
		l.leave(&o, e, request, key)
	}
	ok := outcome{status: 200}
	end(outcome{status: 503}, answered, 1, 11) // failed: a second try is no repeat
	end(ok, answered, 1, 11)
	end(outcome{status: 200, soft: true}, answered, 2, 0) // nor after a soft error
	end(ok, answered, 2, 0)
	end(ok, abandoned, 3, 0) // nor when the client had left
	end(ok, answered, 3, 0)
	if c := l.counts; c.repeats != 0 || c.duplicates != 0 || c.extra != 0 {
		t.Fatalf("repeats %d, duplicates %d, extra %d, want none", c.repeats, c.duplicates, c.extra)
	}
	end(ok, answered, 1, 11)
	end(ok, answered, 1, 12)
	end(ok, answered, 4, 12)
	if c := l.counts; c.repeats != 1 || c.duplicates != 2 || c.extra != 2 {
		t.Fatalf("repeats %d, duplicates %d, extra %d, want 1, 2 and 2", c.repeats, c.duplicates, c.extra)
	}
}
