package stub

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracle decides as the words say it, from the whole list of accepted times.
type oracle struct {
	window   Window
	limit    Limit
	wall     int64
	accepted []int64
}

func (o *oracle) room(t int64) bool {
	per, used := int64(o.limit.Per), int64(0)
	switch o.window {
	case Bucket: // replayed from a full bucket, in exact arithmetic
		level, last := big.NewRat(o.limit.N, 1), int64(0)
		refill := func(to int64) {
			level.Add(level, big.NewRat(o.limit.N*(to-last), per))
			if full := big.NewRat(o.limit.N, 1); level.Cmp(full) > 0 {
				level = full
			}
			last = to
		}
		for _, a := range o.accepted {
			refill(a)
			level.Sub(level, big.NewRat(1, 1))
		}
		refill(t)
		return level.Cmp(big.NewRat(1, 1)) >= 0
	case Fixed:
		for _, a := range o.accepted {
			if (a+o.wall)/per == (t+o.wall)/per {
				used++
			}
		}
	default:
		for _, a := range o.accepted {
			if a > t-per {
				used++
			}
		}
	}
	return used < o.limit.N
}

func TestLimitsAgainstAnOracle(t *testing.T) {
	for _, window := range []Window{Sliding, Fixed, Bucket} {
		t.Run(string(window), rapid.MakeCheck(func(t *rapid.T) {
			limits := []Limit{
				{rapid.Int64Range(0, 4).Draw(t, "n"), time.Duration(rapid.Int64Range(1, 20).Draw(t, "per"))},
				{rapid.Int64Range(1, 9).Draw(t, "n2"), time.Duration(rapid.Int64Range(20, 60).Draw(t, "per2"))},
			}
			const wall = 1_000_003
			q := quota{window: window, wall: wall}
			q.set(limits, 0)
			slow := []oracle{{window: window, limit: limits[0], wall: wall}, {window: window, limit: limits[1], wall: wall}}
			at := int64(0)
			for _, step := range rapid.SliceOf(rapid.Int64Range(0, 9)).Draw(t, "steps") {
				at += step
				want := slow[0].room(at) && slow[1].room(at)
				wait, ok := q.take(at)
				if ok != want {
					t.Fatalf("at %d: accepted %v, want %v", at, ok, want)
				}
				if ok {
					for i := range slow {
						slow[i].accepted = append(slow[i].accepted, at)
					}
					continue
				}
				if limits[0].N == 0 {
					continue // no wait helps; the period is named
				}
				then := at + int64(wait)
				if !slow[0].room(then) || !slow[1].room(then) {
					t.Fatalf("at %d: told to wait %d, but there is no room then", at, wait)
				}
				if slow[0].room(then-1) && slow[1].room(then-1) {
					t.Fatalf("at %d: told to wait %d, but less would do", at, wait)
				}
			}
		}))
	}
}

// A fixed window lets twice the limit pass around its edge; a sliding one never.
func TestFixedWindowDoublesAtTheEdge(t *testing.T) {
	for window, want := range map[Window]int{Fixed: 20, Sliding: 10, Bucket: 10} {
		q := quota{window: window}
		q.set([]Limit{{10, time.Second}}, 0)
		passed := 0
		for _, at := range []time.Duration{990 * time.Millisecond, 1010 * time.Millisecond} {
			for range 20 {
				if _, ok := q.take(int64(at)); ok {
					passed++
				}
			}
		}
		if passed != want {
			t.Errorf("%s: %d passed around the edge, want %d", window, passed, want)
		}
	}
}

func TestBucketBurst(t *testing.T) {
	q := quota{window: Bucket, burst: 3}
	q.set([]Limit{{10, time.Second}}, 0)
	passed := 0
	for at := range 10_000 { // one second, every 0.1 ms
		if _, ok := q.take(int64(at) * 100_000); ok {
			passed++
		}
	}
	if passed != 3+9 { // the tenth refill is complete at 1 s, which is not reached
		t.Errorf("%d passed, want 12", passed)
	}
}

// A limit that a fault brings in must not hand out a full bucket.
func TestChangedBucketStartsEmpty(t *testing.T) {
	q := quota{window: Bucket}
	q.set([]Limit{{10, time.Second}}, 0)
	q.set([]Limit{{100, time.Second}}, 0)
	if wait, ok := q.take(0); ok || wait != 10*time.Millisecond {
		t.Errorf("accepted %v, wait %v, want a wait of 10ms", ok, wait)
	}
}
