package rate_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/internal/race"
	"github.com/metehq/mete/rate"
)

func TestNewRefusesNonsense(t *testing.T) {
	for _, limit := range []rate.Limit{
		nil,
		rate.Window{N: -1, Per: time.Second},
		rate.Window{N: 1},
		rate.Window{N: 1, Per: -time.Second},
		rate.Window{N: 1, Per: math.MaxInt64},
		rate.Window{N: 1, Per: time.Second, Burst: -1},
		rate.Window{N: 1, Per: time.Second, Margin: -1},
		rate.Window{N: math.MaxInt64, Per: time.Second},
		rate.Bucket{N: 1, Per: time.Second, Burst: math.MaxInt64},
		rate.Bucket{N: 1},
		rate.Calendar{N: 1},
		rate.Calendar{N: 1, Each: "week"},
	} {
		if _, err := rate.New(limit); !errors.Is(err, rate.ErrInvalid) {
			t.Errorf("%v: %v", limit, err)
		}
	}
}

// A limit of 0 admits nothing and says so at once, until it is raised
// (golang/go#39984, golang/go#47221, golang/go#18763, golang/go#68541).
func TestZeroAdmitsNothing(t *testing.T) {
	for name, limits := range map[string][2]rate.Limit{
		"window":   {rate.Window{Per: time.Second}, rate.Window{N: 1, Per: time.Second}},
		"bucket":   {rate.Bucket{Per: time.Second}, rate.Bucket{N: 1, Per: time.Second}},
		"calendar": {rate.Calendar{Each: "day"}, rate.Calendar{N: 1, Each: "day"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				time.Sleep(time.Hour) // off the turn of the day
				start := time.Now()
				l := must(t, limits[0])
				for range 1000 {
					if l.Allow(1) {
						t.Fatal("allowed")
					}
				}
				if err := l.Wait(t.Context(), 1); !errors.Is(err, rate.ErrNever) {
					t.Fatal(err)
				}
				if _, err := l.Peek(1); !errors.Is(err, rate.ErrNever) || time.Since(start) > 0 {
					t.Fatal(err)
				}
				if err := l.Set(limits[1]); err != nil {
					t.Fatal(err)
				}
				if !l.Allow(1) || l.Allow(1) {
					t.Fatal("raised to 1: exactly one may start")
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: 100_000 * time.Second})
		n := 0
		for range 1000 {
			if l.Allow(1) {
				n++
			}
		}
		if d := peek(t, l, 1); n != 1 || d != 100_000*time.Second {
			t.Fatalf("%d allowed, next in %v", n, d)
		}
	})
}

// More than the limit is an error at once, and nothing is consumed
// (bucket4j/bucket4j#20, rclone/rclone#9820, golang/go#16854).
func TestMoreThanTheLimit(t *testing.T) {
	for _, limit := range []rate.Limit{
		rate.Window{N: 5, Per: time.Second, Burst: 5}, rate.Bucket{N: 1, Per: time.Second, Burst: 5},
		rate.Calendar{N: 5, Each: "month"},
	} {
		bubble(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			l := must(t, limit)
			_, err := l.Take(t.Context(), 7)
			refusal, ok := errors.AsType[*rate.Refusal](err)
			if !ok || !errors.Is(err, rate.ErrTooLarge) || refusal.Capacity != 5 || refusal.N != 7 {
				t.Fatal(err)
			}
			if _, err := l.Peek(7); !errors.Is(err, rate.ErrTooLarge) {
				t.Fatal(err)
			}
			if l.Allow(7) {
				t.Fatal("allowed")
			}
			for _, n := range []int64{0, -1, math.MinInt64} {
				if _, err := l.Peek(n); l.Allow(n) || !errors.Is(l.Wait(t.Context(), n), rate.ErrInvalid) || !errors.Is(err, rate.ErrInvalid) {
					t.Fatalf("%d units", n)
				}
			}
			free(t, l, 5)
			if !l.Allow(5) || l.Allow(math.MaxInt64) {
				t.Fatal("5 are free")
			}
		})
	}
	// What is as good as unlimited is still told in so many words.
	l := must(t, rate.Bucket{N: rate.MaxUnits, Per: time.Second, Burst: rate.MaxUnits})
	if err := l.Wait(t.Context(), 1e9); err != nil {
		t.Fatal(err)
	}
}

// A long idle time neither wraps around nor fills beyond the burst
// (bucket4j/bucket4j#51).
func TestLongIdle(t *testing.T) {
	for _, idle := range []time.Duration{12 * time.Hour, 400 * 24 * time.Hour, 220 * 365 * 24 * time.Hour} {
		bubble(t, func(t *testing.T) {
			l := must(t, rate.Bucket{N: 1e9, Per: time.Second, Burst: 1e9})
			take(t, l, 1e9)
			free(t, l, 0)
			time.Sleep(idle)
			free(t, l, 1e9)
			if !l.Allow(1e9) || l.Allow(1) {
				t.Fatal("exactly the burst is free")
			}
		})
	}
}

// Whoever sleeps for exactly the announced time is admitted, never before
// (golang/time#19, golang/go#46579, golang/go#34861).
func TestAnnouncedTimeSuffices(t *testing.T) {
	for _, r := range []struct {
		n   int64
		per time.Duration
	}{{3, time.Second}, {7, time.Second}, {99, 10 * time.Second}, {1, 10 * time.Second}, {3333, 10 * time.Second},
		{1, 3 * time.Second}, {1e9, time.Second}, {7e8, time.Second}, {1, 30 * 365 * 24 * time.Hour}} {
		for _, limit := range []rate.Limit{rate.Bucket{N: r.n, Per: r.per}, rate.Window{N: r.n, Per: r.per}} {
			bubble(t, func(t *testing.T) {
				l := must(t, limit)
				start := time.Now()
				starts := 10_000
				if race.Enabled {
					starts /= 10
				}
				for i := range starts {
					if time.Since(start) > 150*365*24*time.Hour {
						break
					}
					d := peek(t, l, 1)
					if d > 0 {
						if time.Sleep(d - 1); l.Allow(1) {
							t.Fatalf("%v: start %d before the announced time", limit, i)
						}
						time.Sleep(time.Nanosecond)
					}
					if !l.Allow(1) {
						t.Fatalf("%v: start %d refused at its announced time", limit, i)
					}
				}
			})
		}
	}
}

// The long-term rate is exact: no interval is cut to whole nanoseconds.
func TestRateIsExact(t *testing.T) {
	for _, n := range []int64{1, 3, 7e8} {
		bubble(t, func(t *testing.T) {
			l := must(t, rate.Bucket{N: n, Per: time.Second, Burst: n})
			take(t, l, n)
			start := time.Now()
			for range 10 {
				if err := l.Wait(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start); d != 10*time.Second {
				t.Fatalf("%d/s: ten seconds' worth took %v", n, d)
			}
		})
	}
}

// No window holds more than N, also across what would be the edge of a fixed
// one (plausible/analytics#6497, boinkor-net/governor#219).
func TestWindowHasNoEdge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Window{N: 10, Per: time.Second, Burst: 10})
		try := func() (n int) {
			for range 10 {
				if l.Allow(1) {
					n++
				}
			}
			return n
		}
		time.Sleep(950 * ms)
		if n := try(); n != 10 {
			t.Fatal(n)
		}
		time.Sleep(100 * ms)
		if n := try(); n != 0 {
			t.Fatal(n)
		}
		time.Sleep(900 * ms)
		if n := try(); n != 0 {
			t.Fatalf("%d within the margin", n)
		}
		time.Sleep(7 * ms)
		if n := try(); n != 10 {
			t.Fatal(n)
		}
	})
}

// start is a cost that was granted.
type start struct {
	at time.Duration
	n  int64
}

// most is the largest cost in any half-open window.
func most(starts []start, per time.Duration) (most int64) {
	var sum int64
	lo := 0
	for _, s := range starts {
		sum += s.n
		for s.at-starts[lo].at >= per {
			sum -= starts[lo].n
			lo++
		}
		most = max(most, sum)
	}
	return most
}

// Whatever is asked for and when: a window never holds more than N, and a
// bucket never admits more than its burst and what flowed in.
func TestBoundsOfTheModels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(rt, "n")
		burst := rapid.Int64Range(1, n).Draw(rt, "burst")
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 300), 1, 60).Draw(rt, "gaps")
		var window, bucket []start
		synctest.Test(t, func(t *testing.T) {
			w := must(t, rate.Window{N: n, Per: time.Second, Burst: burst})
			b := must(t, rate.Bucket{N: n, Per: time.Second, Burst: 5 + burst})
			begin := time.Now()
			var mu sync.Mutex
			for i, gap := range gaps {
				cost := int64(i)%burst + 1
				time.Sleep(time.Duration(gap) * ms)
				book := func(l *rate.Limiter, list *[]start) {
					if err := l.Wait(t.Context(), cost); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					*list = append(*list, start{time.Since(begin), cost})
				}
				go book(w, &window)
				go book(b, &bucket)
			}
			time.Sleep(time.Hour)
		})
		if len(window) != len(gaps) || len(bucket) != len(gaps) {
			rt.Fatalf("%d and %d of %d granted", len(window), len(bucket), len(gaps))
		}
		if m := most(window, time.Second); m > n {
			rt.Fatalf("%d of %d in a window", m, n)
		}
		for i := range bucket {
			var sum int64
			for _, s := range bucket[i:] {
				sum += s.n
				if in := float64(n) * (s.at - bucket[i].at).Seconds(); float64(sum) > float64(5+burst)+in+1e-6 {
					rt.Fatalf("%d in %v", sum, s.at-bucket[i].at)
				}
			}
		}
	})
}

// What was not used while idle is not banked beyond the burst
// (uber-go/ratelimit#121, ska-sa/spead2#53, jhurliman/node-rate-limiter#38).
func TestIdleBanksNoMoreThanTheBurst(t *testing.T) {
	for _, tc := range []struct {
		limit rate.Limit
		span  time.Duration
	}{
		{rate.Bucket{N: 10, Per: time.Second}, 1900 * ms},
		{rate.Bucket{N: 10, Per: time.Second, Burst: 5}, 1500 * ms},
		{rate.Window{N: 10, Per: time.Second}, 1900 * ms},
		{rate.Window{N: 10, Per: time.Second, Burst: 5}, 1500 * ms},
	} {
		bubble(t, func(t *testing.T) {
			l := must(t, tc.limit)
			l.Wait(t.Context(), 1)
			time.Sleep(time.Minute)
			begin := time.Now()
			for range 20 {
				l.Wait(t.Context(), 1)
			}
			if d := time.Since(begin); d < tc.span || d > tc.span+20*ms {
				t.Errorf("%v: 20 starts span %v", tc.limit, d)
			}
		})
	}
}

// After a stall nothing is made up: the token is taken at the start, and the
// busiest second of a 20/s window holds 20.
func TestStallIsNotMadeUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Window{N: 20, Per: time.Second})
		begin := time.Now()
		var starts []start
		for i := range 200 {
			if i == 60 {
				time.Sleep(5 * time.Second)
			}
			l.Wait(t.Context(), 1)
			starts = append(starts, start{time.Since(begin), 1})
		}
		if m := most(starts, time.Second); m > 20 {
			t.Fatalf("%d in a second", m)
		}
		gaps := []time.Duration{}
		for i := 1; i < len(starts); i++ {
			gaps = append(gaps, starts[i].at-starts[i-1].at)
		}
		if slices.Min(gaps) < 49*ms {
			t.Fatalf("two starts %v apart", slices.Min(gaps))
		}
	})
}

// A calendar is closed within a second of its turn, starts afresh after it,
// and goes by the days of its zone.
func TestCalendarTurns(t *testing.T) {
	bubble(t, func(t *testing.T) { // begins on 2000-01-01 at midnight UTC
		l := must(t, rate.Calendar{N: 3, Each: "day"})
		if d := peek(t, l, 1); d != time.Second || l.Allow(1) {
			t.Fatalf("at the turn: %v", d)
		}
		time.Sleep(time.Hour)
		g := take(t, l, 2)
		take(t, l, 1)
		if d := peek(t, l, 1); d != 23*time.Hour+time.Second || l.Allow(1) {
			t.Fatalf("used up: %v", d)
		}
		w := wait(l, 3)
		w.granted(t, 23*time.Hour+time.Second)
		g.Settle(0) // of yesterday
		free(t, l, 0)
	})
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Calendar{N: 1, Each: "month", Zone: time.FixedZone("", 3600)})
		time.Sleep(time.Hour)
		take(t, l, 1)
		wait(l, 1).granted(t, 31*24*time.Hour-2*time.Hour+time.Second)
	})
}

// A limiter that was used in one bubble works in the next one, where the
// clock begins anew: what it has booked counts from there.
func TestTwoBubbles(t *testing.T) {
	for _, limit := range []rate.Limit{rate.Window{N: 2, Per: time.Minute}, rate.Bucket{N: 2, Per: time.Minute, Burst: 2}} {
		l := must(t, limit)
		l.Allow(1)
		for range 2 {
			bubble(t, func(t *testing.T) {
				l.Wait(t.Context(), 1)
				l.Wait(t.Context(), 1)
				if l.Allow(2) {
					t.Fatal("allowed")
				}
				begin := time.Now()
				if err := l.Wait(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(begin); d > 2*time.Minute {
					t.Fatalf("%v: waited %v", limit, d)
				}
				time.Sleep(10 * time.Minute)
			})
		}
		// Nor does a refusal of the bubble's time, decades ahead, stand here.
		if d := peek(t, l, 1); d > 2*time.Minute {
			t.Fatalf("outside again: %v", d)
		}
	}
}
