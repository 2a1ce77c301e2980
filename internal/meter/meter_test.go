package meter

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// start is one start as an oracle remembers it: at the wire, or still held.
type start struct {
	at   time.Duration
	n    int64
	held bool
}

// inWindow is the cost that lies in the span before now, held ones included.
func inWindow(starts []start, now, span time.Duration) (sum int64) {
	for _, s := range starts {
		if s.held || s.at > now-span {
			sum += s.n
		}
	}
	return sum
}

// Whatever is taken, sent, settled and cancelled in whatever order, an unpaced
// window admits a start exactly when every window has room for it.
func TestWindowAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 12).Draw(t, "n")
		w := NewWindow(WindowSpec{N: n, Per: 100 * ms, Margin: 5 * ms})
		span := 105 * ms
		var starts []start
		var charges []Charge
		now := time.Duration(0)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * ms
			switch rapid.SampledFrom([]string{"take", "take", "take", "sent", "settle"}).Draw(t, "op") {
			case "take":
				cost := rapid.Int64Range(1, n).Draw(t, "cost")
				free := inWindow(starts, now, span)+cost <= n
				ready := w.Ready(now, cost)
				if (ready <= now) != free {
					t.Fatalf("at %v: ready %v, but %d of %d used, cost %d", now, ready, inWindow(starts, now, span), n, cost)
				}
				if w.Backlog(now, 0, cost) > ready {
					t.Fatalf("backlog %v is later than ready %v", w.Backlog(now, 0, cost), ready)
				}
				if free {
					wire := rapid.Bool().Draw(t, "wire")
					charges = append(charges, w.Take(now, cost, wire))
					starts = append(starts, start{at: now, n: cost, held: !wire})
				} else if ready != Later {
					// The announced time is the first at which there is room.
					if inWindow(starts, ready, span)+cost > n || inWindow(starts, ready-1, span)+cost <= n {
						t.Fatalf("at %v announced %v", now, ready)
					}
					now = ready - time.Duration(rapid.IntRange(0, 1).Draw(t, "before"))
				}
			case "sent":
				if len(charges) > 0 {
					i := rapid.IntRange(0, len(charges)-1).Draw(t, "which")
					if starts[i].held {
						w.Sent(now, &charges[i])
						starts[i].held = false
						if now-starts[i].at > movedAfter {
							starts[i].at = now
						}
					}
				}
			case "settle":
				if len(charges) > 0 {
					i := rapid.IntRange(0, len(charges)-1).Draw(t, "which")
					if charges[i].n == 0 {
						continue
					}
					actual := rapid.Int64Range(0, n+3).Draw(t, "actual")
					if actual > starts[i].n {
						// A debt beyond the window is TestAlone's.
						actual = max(min(actual, starts[i].n+n-inWindow(starts, now, span)), starts[i].n)
					}
					if debt := actual - starts[i].n; debt > 0 {
						starts = append(starts, start{at: now, n: debt})
						charges = append(charges, Charge{mark: mark(0, true)})
					} else {
						starts[i].n = actual
					}
					if starts[i].held {
						starts[i].held = false
						if now-starts[i].at > movedAfter {
							starts[i].at = now
						}
					}
					w.Settle(now, &charges[i], actual)
					charges[i].n = 0 // settled once
				}
			}
			if got, want := w.Free(now), n-inWindow(starts, now, span); got != want {
				t.Fatalf("at %v free is %d, want %d", now, got, want)
			}
			for i := range charges {
				if c := &charges[i]; c.n > 0 && c.At() != starts[i].at {
					t.Fatalf("charge %d is booked at %v, want %v", i, c.At(), starts[i].at)
				}
			}
			// What is written down for a restart is all of it, and frees nothing
			// too early.
			again := NewWindow(w.spec)
			again.Restore(0, w.Spent(now))
			later := time.Duration(rapid.IntRange(0, 120).Draw(t, "later")) * ms
			kept := slices.Clone(starts)
			for i := range kept {
				if kept[i].held {
					kept[i] = start{at: now, n: kept[i].n} // sent, as far as anybody can tell
				}
			}
			if got, want := again.Free(later), n-inWindow(kept, now+later, span); got != want {
				t.Fatalf("%v after a restart free is %d, want %d", later, got, want)
			}
		}
	})
}

// A paced window uses nearly all of its limit and never passes it, and what is
// late within the catch-up is made up.
func TestWindowPaced(t *testing.T) {
	for _, tc := range []struct {
		n    int64
		per  time.Duration
		used float64
	}{{1, time.Second, 0.992}, {10, time.Second, 0.992}, {50, time.Second, 0.992}, {1000, time.Second, 0.992}, {300, time.Minute, 0.998}} {
		w := NewWindow(WindowSpec{N: tc.n, Per: tc.per, Paced: true})
		var at []time.Duration
		now, late := time.Duration(0), time.Duration(0)
		end := 3*tc.per + 10*time.Second
		for now < end {
			if r := w.Ready(now, 1); r > now {
				late = (late + 701*time.Microsecond) % (1200 * time.Microsecond)
				now = r + late
				continue
			}
			w.Take(now, 1, true)
			at = append(at, now)
		}
		most, lo := 0, 0
		for hi := range at {
			for at[hi]-at[lo] >= tc.per {
				lo++
			}
			most = max(most, hi-lo+1)
		}
		used := float64(len(at)-1) / float64(tc.n) / (float64(at[len(at)-1]) / float64(tc.per))
		if int64(most) > tc.n || used < tc.used || used > 1 {
			t.Errorf("%d/%v: most %d in a window, used %.4f", tc.n, tc.per, most, used)
		}
	}
}

// exactLevel is the content of a bucket in units, replayed over all charges
// from the first one on.
func exactLevel(s BucketSpec, charges []start, now time.Duration) *big.Rat {
	level := new(big.Rat).SetInt64(s.Burst)
	last := time.Duration(0)
	flow := func(to time.Duration) {
		in := big.NewRat(int64(to-last), int64(s.Per))
		level.Add(level, in.Mul(in, new(big.Rat).SetInt64(s.N)))
		if full := new(big.Rat).SetInt64(s.Burst); level.Cmp(full) > 0 {
			level.Set(full)
		}
		last = to
	}
	for _, c := range charges {
		if c.n > 0 {
			flow(c.at)
			level.Sub(level, new(big.Rat).SetInt64(c.n))
		}
	}
	flow(now)
	return level
}

// A refund gives the state that the bucket would have without the charge
// (golang/go#56924, golang/go#69419), a debt is charged when it is settled.
func TestBucketAgainstReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := BucketSpec{
			N:     rapid.Int64Range(1, 700).Draw(t, "n"),
			Per:   time.Duration(rapid.Int64Range(1, 3000).Draw(t, "per")) * ms,
			Burst: rapid.Int64Range(1, 40).Draw(t, "burst"),
		}
		b := NewBucket(s)
		b.credit = 0
		var all []start
		var charges []Charge
		var index []int
		now := time.Duration(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(s.Per)).Draw(t, "dt"))
			if rapid.Bool().Draw(t, "take") || len(charges) == 0 {
				n := rapid.Int64Range(1, s.Burst).Draw(t, "n")
				level := exactLevel(s, all, now)
				can := level.Cmp(new(big.Rat).SetInt64(n)) >= 0
				ready := b.Ready(now, n)
				if can != (ready <= now) {
					t.Fatalf("at %v level %v, cost %d: ready %v", now, level.FloatString(6), n, ready)
				}
				if can {
					charges = append(charges, b.Take(now, n, true))
					index = append(index, len(all))
					all = append(all, start{at: now, n: n})
				} else if exactLevel(s, all, ready).Cmp(new(big.Rat).SetInt64(n)) < 0 ||
					exactLevel(s, all, ready-1).Cmp(new(big.Rat).SetInt64(n)) >= 0 {
					t.Fatalf("at %v announced %v", now, ready)
				}
			} else {
				i := rapid.IntRange(0, len(charges)-1).Draw(t, "which")
				if charges[i].n == 0 {
					continue
				}
				actual := rapid.Int64Range(0, s.Burst+5).Draw(t, "actual")
				old := charges[i].n
				b.Settle(now, &charges[i], actual)
				charges[i].n = 0
				if actual > old {
					all = append(all, start{at: now, n: actual - old})
				} else {
					all[index[i]].n = actual
				}
			}
			level := exactLevel(s, all, now)
			floor := new(big.Int).Div(level.Num(), level.Denom()).Int64()
			if got := b.Free(now); got != floor {
				t.Fatalf("at %v free is %d, want %s", now, got, level.FloatString(6))
			}
		}
	})
}

// Long idle times neither overflow nor refill beyond the burst
// (bucket4j/bucket4j#51).
func TestBucketIdle(t *testing.T) {
	b := NewBucket(BucketSpec{N: 1e9, Per: time.Second, Burst: 1e9})
	now := time.Duration(0)
	for _, idle := range []time.Duration{12 * time.Hour, 400 * 24 * time.Hour, 290 * 365 * 24 * time.Hour} {
		b.Take(now, 1e9, true)
		if free := b.Free(now); free != 0 {
			t.Fatalf("drained bucket has %d", free)
		}
		if now += idle; b.Free(now) != 1e9 || b.Ready(now, 1e9) > now {
			t.Fatalf("after %v free is %d", idle, b.Free(now))
		}
		now = 0
		b = NewBucket(b.spec)
	}
}

// The announced delay suffices at every rate (golang/time#19, golang/go#34861).
func TestAnnouncedDelaySuffices(t *testing.T) {
	for _, r := range []struct {
		n   int64
		per time.Duration
	}{{3, time.Second}, {7, time.Second}, {99, 10 * time.Second}, {1, 10 * time.Second}, {3333, 10 * time.Second}, {1, 3 * time.Second}, {1e9, time.Second}, {700000000, time.Second}, {1, 31 * 365 * 24 * time.Hour}} {
		for name, m := range map[string]Meter{
			"bucket": NewBucket(BucketSpec{N: r.n, Per: r.per, Burst: 1}),
			"window": NewWindow(WindowSpec{N: r.n, Per: r.per, Paced: true}),
		} {
			now := time.Duration(0)
			for i := range 2000 {
				if at := m.Ready(now, 1); at > now {
					if m.Ready(at-1, 1) <= at-1 {
						t.Fatalf("%s %d/%v: ready before the announced time", name, r.n, r.per)
					}
					now = at
				}
				if m.Ready(now, 1) > now {
					t.Fatalf("%s %d/%v: start %d refused at its announced time", name, r.n, r.per, i)
				}
				m.Take(now, 1, true)
				if now > Later/4 {
					break
				}
			}
		}
	}
}

// High rates are not truncated to whole nanoseconds per start.
func TestRateIsExact(t *testing.T) {
	for _, n := range []int64{1, 3, 7, 333, 1e6, 7e8} {
		b := NewBucket(BucketSpec{N: n, Per: time.Second, Burst: 1})
		b.Take(0, 1, true)
		for range 1000 {
			b.Take(b.Ready(0, 1), 1, true)
		}
		ideal := float64(1001) / float64(n) * 1e9
		if got := float64(b.full.due); got < ideal-1 || got > ideal+1 {
			t.Errorf("%d/s: 1001 starts take %.0f ns, want %.0f", n, got, ideal)
		}
	}
}

// A limit of zero admits nothing (golang/go#39984).
func TestZeroAdmitsNothing(t *testing.T) {
	w := NewWindow(WindowSpec{N: 0, Per: time.Second, Paced: true})
	b := NewBucket(BucketSpec{N: 0, Per: time.Second, Burst: 1})
	for _, m := range []Meter{w, b} {
		if m.Capacity() != 0 || m.Ready(0, 1) != Later || m.Backlog(0, 0, 1) != Later {
			t.Errorf("%T of 0/s admits", m)
		}
	}
	w.Update(ms, WindowSpec{N: 5, Per: time.Second, Paced: true})
	b.Update(ms, BucketSpec{N: 5, Per: time.Second, Burst: 1})
	for _, m := range []Meter{w, b} {
		if m.Capacity() == 0 || m.Ready(ms, 1) > ms {
			t.Errorf("%T stays closed after it was raised", m)
		}
	}
}

// A change never creates capacity, and those who wait are planned anew
// (golang/go#23575).
func TestUpdate(t *testing.T) {
	w := NewWindow(WindowSpec{N: 1, Per: time.Minute, Paced: true})
	w.Take(0, 1, true)
	w.Update(time.Second, WindowSpec{N: 10, Per: time.Second, Paced: true})
	if r := w.Ready(time.Second, 1); r > 1150*ms {
		t.Errorf("raised from 1/m to 10/s: next start at %v", r)
	}
	b := NewBucket(BucketSpec{N: 1, Per: time.Hour, Burst: 100})
	b.Take(0, 20, true)
	b.Update(0, BucketSpec{N: 1, Per: time.Hour, Burst: 5})
	if free := b.Free(0); free != 5 {
		t.Errorf("burst 100 to 5 with 80 left: %d", free)
	}
	b.Update(0, BucketSpec{N: 1, Per: time.Hour, Burst: 100})
	if free := b.Free(0); free > 5 {
		t.Errorf("burst raised again: %d, the change created capacity", free)
	}
	w = NewWindow(WindowSpec{N: 50, Per: time.Second, Paced: true})
	now := time.Duration(0)
	for range 5000 {
		now = w.Ready(now, 1)
		w.Take(now, 1, true)
	}
	w.Update(now, WindowSpec{N: 3000, Per: time.Minute, Paced: true})
	if free := w.Free(now); free > 30 {
		t.Errorf("from 50/s to 3000/m after a busy minute: %d free", free)
	}
}

// A rate that is 0 for a while neither refills the bucket nor forgives a debt.
func TestBucketClosedForAWhile(t *testing.T) {
	open := BucketSpec{N: 10, Per: time.Second, Burst: 10}
	b := NewBucket(open)
	c := b.Take(0, 10, true)
	b.Update(0, BucketSpec{Per: time.Second, Burst: 10})
	if free := b.Free(time.Hour); free != 0 {
		t.Errorf("closed for an hour: %d free", free)
	}
	b.Settle(time.Hour, &c, 15)
	b.Update(time.Hour, open)
	if free := b.Free(time.Hour); free != -5 {
		t.Errorf("open again: %d free, want the debt of 5", free)
	}
	if r := b.Ready(time.Hour, 1); r != time.Hour+600*ms {
		t.Errorf("next start at %v", r)
	}
}

// Setting a limit over and over does not keep it from filling.
func TestBucketUpdatedOften(t *testing.T) {
	b := NewBucket(BucketSpec{N: 1, Per: time.Minute, Burst: 1})
	b.Take(0, 1, true)
	for i := range 600 {
		k := 1 + int64(i%2)
		b.Update(time.Duration(i)*100*ms, BucketSpec{N: k, Per: time.Duration(k) * time.Minute, Burst: 1 + int64(i/2%2)})
	}
	if r := b.Ready(time.Minute, 1); r > time.Minute+ms {
		t.Errorf("ready at %v, want 1m", r)
	}
}

// A charge from before a change is not taken for one from after it.
func TestBucketSettledAfterUpdate(t *testing.T) {
	b := NewBucket(BucketSpec{N: 1, Per: time.Hour, Burst: 10})
	old := b.Take(0, 3, true)
	b.Update(ms, BucketSpec{N: 1, Per: time.Hour, Burst: 20})
	b.Take(2*ms, 5, true)
	b.Settle(3*ms, &old, 0)
	if free := b.Free(3 * ms); free != 2 {
		t.Errorf("free is %d, want 2", free)
	}
}

// Memory stays bounded whatever is cancelled and however long a log lives.
func TestMemoryIsBounded(t *testing.T) {
	w := NewWindow(WindowSpec{N: 20, Per: time.Hour})
	b := NewBucket(BucketSpec{N: 1e6, Per: time.Second, Burst: 1e6})
	for i := range 300000 {
		now := time.Duration(i) * 10 * time.Microsecond
		a := w.Take(now, 1, false)
		c := w.Take(now+1, 1, false)
		w.Settle(now+2, &a, 0)
		w.Settle(now+3, &c, 0)
		b.Take(now, 10, true)
	}
	if n := len(w.log.ring) + len(b.log.ring); n > 8*many {
		t.Errorf("%d cells", n)
	}
	if w.Free(4*time.Second) != 20 {
		t.Errorf("free is %d after everything was cancelled", w.Free(4*time.Second))
	}
}

func TestSpentAndRestore(t *testing.T) {
	spec := WindowSpec{N: 100, Per: time.Minute}
	w := NewWindow(spec)
	for i := range 60 {
		w.Take(time.Duration(i)*500*ms, 1, i%7 != 0)
	}
	now := 30 * time.Second
	again := NewWindow(spec)
	again.Restore(0, w.Spent(now))
	for _, later := range []time.Duration{0, 20 * time.Second, 40 * time.Second} {
		if a, b := again.Free(later), w.Free(now+later); a > b+9 || (later == 0 && a != b) {
			// What was not sent counts as sent when it was saved: 9 of them.
			t.Errorf("%v later: %d free, was %d", later, a, b)
		}
	}
	b := NewBucket(BucketSpec{N: 10, Per: time.Second, Burst: 10})
	b.Restore(0, []Spent{{Age: 300 * ms, Units: 10}})
	if b.Free(0) != 3 {
		t.Errorf("a bucket that was emptied 300 ms ago restarts with %d", b.Free(0))
	}
}

// A cost above the capacity goes alone, and what it owes is waited for; a
// refund shortens that.
func TestAlone(t *testing.T) {
	for name, m := range map[string]Meter{
		"paced":  NewWindow(WindowSpec{N: 100, Per: time.Second, Margin: ms, Paced: true, Bulk: true, Alone: true}),
		"cap":    NewWindow(WindowSpec{N: 100, Per: time.Second, Margin: ms, Bulk: true, Alone: true}),
		"bucket": NewBucket(BucketSpec{N: 100, Per: 1001 * ms, Burst: 100, Alone: true}),
	} {
		m.Take(0, 1, true)
		first := m.Ready(0, 250)
		if first == Later || (name != "paced" && first <= 0) {
			t.Errorf("%s: 250 of 100 beside another one: ready at %v", name, first)
		}
		now := max(first, 1001*ms)
		if m.Ready(now, 250) > now {
			t.Fatalf("%s: not admitted alone", name)
		}
		c := m.Take(now, 250, true)
		// 2.5 windows are owed; a full window may start one window before that.
		owed := m.Ready(now, 100) - now
		if owed < 2500*ms*1001/1000-50*ms || owed > 2510*ms {
			t.Errorf("%s: the next 100 start after %v", name, owed)
		}
		m.Settle(now, &c, 100)
		if again := m.Ready(now, 100) - now; again > 1002*ms || again < 990*ms {
			t.Errorf("%s: after the refund they start after %v", name, again)
		}
	}
}

// Starts of a large window share cells, and none of them leaves it too early.
func TestJoinedStartsLeaveLate(t *testing.T) {
	const n = 20_000
	w := NewWindow(WindowSpec{N: n, Per: 10 * time.Second, Margin: 5 * ms})
	var starts []start
	for i := range 3000 {
		now := time.Duration(i) * 701 * time.Microsecond // a few to a cell
		w.Take(now, 7, true)
		starts = append(starts, start{at: now, n: 7})
	}
	if cells := w.log.len(); cells > 1500 {
		t.Fatalf("%d cells for 3000 starts: none are joined", cells)
	}
	now := 9 * time.Second
	again := NewWindow(w.spec)
	again.Restore(now, w.Spent(now))
	for ; now < 13*time.Second; now += 3 * ms {
		most := n - inWindow(starts, now, w.span)
		if free := w.Free(now); free > most || free < most-50 {
			t.Fatalf("at %v %d are free, by the list %d", now, free, most)
		}
		if free := again.Free(now); free > most || free < most-800 {
			t.Fatalf("at %v %d are free after a restart, by the list %d", now, free, most)
		}
		for _, m := range []*Window{w, again} {
			if at := m.Ready(now, n-9000); inWindow(starts, at, w.span) > 9000 {
				t.Fatalf("at %v announced %v, where %d are used", now, at, inWindow(starts, at, w.span))
			}
		}
	}
}

func TestDefaultMargin(t *testing.T) {
	for per, want := range map[time.Duration]time.Duration{
		100 * ms: 5 * ms, time.Second: 6666666, 3 * time.Second: 20 * ms, time.Hour: 50 * ms,
	} {
		if w := NewWindow(WindowSpec{N: 1, Per: per}); w.span != per+want {
			t.Errorf("a window of %v lasts %v, want %v more", per, w.span, want)
		}
	}
}

// What a paced window is settled to moves the next start, if more was used or
// less, and the same for a start that was never sent.
func TestSettlingMovesThePace(t *testing.T) {
	for _, wire := range []bool{true, false} {
		w := NewWindow(WindowSpec{N: 10, Per: time.Second, Margin: 5 * ms, Paced: true})
		step := 1005 * ms / 10
		debt := w.Take(0, 1, wire)
		w.Settle(0, &debt, 4)
		if got := w.Ready(0, 1); got != 4*step {
			t.Errorf("on the wire %v: after 4 of 1 the next at %v, want %v", wire, got, 4*step)
		}
		later := 10 * time.Second
		refund := w.Take(later, 5, wire)
		w.Free(later + 2*time.Second) // it is long out of the window
		w.Settle(later+2*time.Second, &refund, 0)
		if used := w.spec.N - w.Free(later+2*time.Second); used != 0 {
			t.Errorf("on the wire %v: %d are used after all was refunded", wire, used)
		}
		if got := w.pace.due; !wire && got > later {
			t.Errorf("the refund of an unsent start left the pace at %v", got)
		}
		once := w.Take(20*time.Second, 1, wire)
		w.Settle(20*time.Second, &once, 1)
		w.Sent(20*time.Second+50*ms, &once)
		if got := w.Free(21*time.Second + 5*ms); got != 10 {
			t.Errorf("on the wire %v: sent after it was settled: %d free", wire, got)
		}
	}
}

// A bucket whose rate and burst change at once keeps its level, within the new
// burst.
func TestBucketUpdatedInBoth(t *testing.T) {
	for _, c := range []struct{ burst, taken, then, free int64 }{
		{100, 20, 5, 5}, {10, 10, 20, 0}, {10, 4, 20, 6}, {10, 0, 20, 10}, {10, 8, 5, 2},
	} {
		b := NewBucket(BucketSpec{N: 1, Per: time.Hour, Burst: c.burst})
		b.Take(0, c.taken, true)
		b.Update(0, BucketSpec{N: 3, Per: time.Hour, Burst: c.then})
		if got := b.Free(0); got > c.free || got < c.free-1 { // a part of a unit may be lost
			t.Errorf("%d of %d taken, then burst %d: %d free, want %d", c.taken, c.burst, c.then, got, c.free)
		}
	}
}

// A bucket that never fills keeps a bounded number of charges.
func TestMemoryOfABusyBucket(t *testing.T) {
	b := NewBucket(BucketSpec{N: 1000, Per: time.Second, Burst: 100})
	b.Take(0, 50, true)
	for i := range 3 * many {
		b.Take(time.Duration(i+1)*ms, 1, true)
	}
	if n := b.log.len(); n > many {
		t.Errorf("%d cells", n)
	}
}

// The first start after a restart keeps its distance from the last one before.
func TestPaceAfterRestart(t *testing.T) {
	spec := WindowSpec{N: 10, Per: time.Minute, Paced: true}
	w := NewWindow(spec)
	w.Take(0, 1, true)
	again := NewWindow(spec)
	again.Restore(0, w.Spent(time.Second))
	if got := again.Ready(0, 1); got < 5*time.Second || got > 6*time.Second {
		t.Errorf("a second after a start at 10 a minute the next one comes after %v", got)
	}
}
