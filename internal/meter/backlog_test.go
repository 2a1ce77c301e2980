package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What Backlog announces is never later than what comes to pass if nothing
// else happens, and where units come one by one it is not much earlier.
func TestBacklogAgainstQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 12).Draw(t, "n")
		burst := rapid.Int64Range(1, n).Draw(t, "burst")
		alone := rapid.Bool().Draw(t, "alone")
		var m Meter
		slack := 2 * Catchup
		paced := rapid.Bool().Draw(t, "paced")
		if rapid.Bool().Draw(t, "bucket") {
			m = NewBucket(BucketSpec{N: n, Per: s, Burst: burst, Alone: alone})
		} else {
			m = NewWindow(WindowSpec{N: n, Per: s, Burst: burst, Paced: paced, Margin: 5 * ms, Alone: alone})
			slack = 1005 * ms // it tells in windows, not when starts leave them
			if !paced {
				slack = Later // nor how a debt is paid off
			}
		}
		now := time.Duration(0)
		queue := func(ahead, cost int64) time.Duration {
			at := now
			for range ahead {
				at = max(at, m.Ready(at, 1))
				m.Take(at, 1, true)
			}
			return max(at, m.Ready(at, cost))
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, 300).Draw(t, "ms")) * ms
			cost := rapid.Int64Range(1, burst).Draw(t, "cost")
			if m.Ready(now, cost) <= now {
				c := m.Take(now, cost, true)
				m.Settle(now, &c, rapid.Int64Range(0, 2*n).Draw(t, "actual"))
			}
		}
		ahead := rapid.Int64Range(0, 30).Draw(t, "ahead")
		cost := rapid.Int64Range(1, burst).Draw(t, "cost")
		if alone {
			cost += rapid.Int64Range(0, 20).Draw(t, "more")
		}
		said := max(m.Backlog(now, ahead, cost), now)
		if at := queue(ahead, cost); said > at || cost == 1 && at-said > slack {
			t.Fatalf("%d behind %d: said %v, came at %v", cost, ahead, said-now, at-now)
		}
	})
}

func TestBacklogOfAnUnusedWindow(t *testing.T) {
	w := NewWindow(WindowSpec{N: 3, Per: s, Margin: 5 * ms})
	for ahead, want := range []time.Duration{0, 0, 0, 1, 1, 1, 2} {
		if got := w.Backlog(0, int64(ahead), 1); got != want*1005*ms {
			t.Errorf("1 behind %d: %v, want %d windows", ahead, got, want)
		}
	}
}
