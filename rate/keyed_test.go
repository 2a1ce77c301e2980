package rate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/internal/race"
	"github.com/metehq/mete/rate"
)

func keyed(t testing.TB, limit rate.Bucket, keys int) *rate.Keyed {
	t.Helper()
	k, err := rate.NewKeyed(limit, keys)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestNewKeyedRefusesNonsense(t *testing.T) {
	for _, tc := range []struct {
		limit rate.Bucket
		keys  int
	}{
		{rate.Bucket{N: 1, Per: time.Second}, 0},
		{rate.Bucket{N: -1, Per: time.Second}, 1},
		{rate.Bucket{N: 1}, 1},
		{rate.Bucket{N: 2, Per: time.Nanosecond}, 1},
		{rate.Bucket{N: 1, Per: 365 * 24 * time.Hour, Burst: 101}, 1},
		{rate.Bucket{N: 1, Per: 365 * 24 * time.Hour, Burst: rate.MaxUnits}, 1},
	} {
		if _, err := rate.NewKeyed(tc.limit, tc.keys); !errors.Is(err, rate.ErrInvalid) {
			t.Errorf("%v for %d keys: %v", tc.limit, tc.keys, err)
		}
	}
}

// What waiting would not help is told at once, and takes nothing.
func TestKeyedRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := keyed(t, rate.Bucket{N: 1, Per: time.Second, Burst: 5}, 10)
		never := keyed(t, rate.Bucket{Per: time.Second}, 10)
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		ended, end := context.WithCancel(t.Context())
		end()
		k.Allow("empty", 5)
		for _, tc := range []struct {
			k    *rate.Keyed
			ctx  context.Context
			key  string
			n    int64
			want error
			wait time.Duration
		}{
			{k, t.Context(), "a", 0, rate.ErrInvalid, 0},
			{k, t.Context(), "a", math.MinInt64, rate.ErrInvalid, 0},
			{k, t.Context(), "a", 6, rate.ErrTooLarge, rate.Never},
			{k, t.Context(), "a", math.MaxInt64, rate.ErrTooLarge, rate.Never},
			{never, t.Context(), "a", 1, rate.ErrNever, rate.Never},
			{k, short, "empty", 2, rate.ErrDeadline, 2 * time.Second},
			{k, ended, "empty", 3, context.Canceled, 3 * time.Second},
		} {
			if ok, after := tc.k.Allow(tc.key, tc.n); ok || after != tc.wait {
				t.Errorf("Allow %s %d: %v after %v, want %v", tc.key, tc.n, ok, after, tc.wait)
			}
			if err := tc.k.Wait(tc.ctx, tc.key, tc.n); !errors.Is(err, tc.want) {
				t.Errorf("Wait %s %d: %v, want %v", tc.key, tc.n, err, tc.want)
			}
		}
		if st := k.Stats(); st.Keys != 1 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
		if ok, _ := k.Allow("a", 5); !ok {
			t.Error("a has not been touched")
		}
	})
}

type keyStep struct {
	kind  string
	key   int
	n, ms int64
	which int
}

var keySteps = rapid.Custom(func(t *rapid.T) keyStep {
	return keyStep{
		kind: rapid.SampledFrom([]string{"allow", "allow", "allow", "wait", "cancel"}).Draw(t, "kind"),
		// A few keys that are in force, and many that are seen once.
		key:   rapid.OneOf(rapid.IntRange(0, 2), rapid.IntRange(0, 1000)).Draw(t, "key"),
		n:     rapid.Int64Range(1, 6).Draw(t, "n"),
		ms:    rapid.SampledFrom([]int64{0, 0, 0, 1, 3, 10, 40}).Draw(t, "ms"),
		which: rapid.IntRange(0, 1000).Draw(t, "which"),
	}
})

// Whatever happens to whichever key, and however many are forgotten: each key
// is admitted exactly when a limiter of its own would have admitted it.
func TestKeyedAgainstALimiterPerKey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rate.Bucket{
			N:     rapid.SampledFrom([]int64{1000, 500, 100, 50}).Draw(rt, "rate"),
			Per:   time.Second,
			Burst: rapid.Int64Range(6, 12).Draw(rt, "burst"),
		}
		list := rapid.SliceOfN(keySteps, 1, 100).Draw(rt, "steps")
		var failure string
		synctest.Test(t, func(t *testing.T) { failure = keyHistory(t, limit, list) })
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

// both is a caller that waits for a key and for the limiter of that key.
type both struct {
	cancel context.CancelFunc
	ended  [2]error
	after  [2]time.Duration
	wg     sync.WaitGroup
}

func keyHistory(t *testing.T, limit rate.Bucket, list []keyStep) string {
	k := keyed(t, limit, len(list))
	limiters := map[int]*rate.Limiter{}
	start := time.Now()
	var callers []*both
	for i, s := range list {
		time.Sleep(time.Duration(s.ms) * ms)
		synctest.Wait() // what is due at this instant comes first
		key, l := strconv.Itoa(s.key), limiters[s.key]
		if l == nil {
			l = must(t, limit)
			limiters[s.key] = l
		}
		switch s.kind {
		case "allow":
			after := peek(t, l, s.n)
			want := l.Allow(s.n)
			if got, until := k.Allow(key, s.n); got != want || until != after {
				return fmt.Sprintf("step %d: Allow(%s, %d) is %v after %v, want %v after %v", i, key, s.n, got, until, want, after)
			}
		case "wait":
			ctx, cancel := context.WithCancel(context.Background())
			c := &both{cancel: cancel}
			callers = append(callers, c)
			for j, wait := range []func() error{
				func() error { return k.Wait(ctx, key, s.n) },
				func() error { return l.Wait(ctx, s.n) },
			} {
				c.wg.Go(func() {
					c.ended[j] = wait()
					c.after[j] = time.Since(start)
				})
			}
			synctest.Wait()
		case "cancel":
			if len(callers) > 0 {
				callers[s.which%len(callers)].cancel()
			}
		}
	}
	for i, c := range callers {
		c.wg.Wait()
		c.cancel()
		if c.ended[0] != c.ended[1] || c.after[0] != c.after[1] {
			return fmt.Sprintf("caller %d: %v at %v, want %v at %v", i, c.ended[0], c.after[0], c.ended[1], c.after[1])
		}
	}
	if st := k.Stats(); st.Overflowed > 0 || st.Waiting > 0 || st.Keys > len(limiters) {
		return fmt.Sprintf("%+v", st)
	}
	return ""
}

// Whatever the limit, and however many keys there are for the places: no key
// is ever admitted more than its burst and what flowed in, and together those
// without a place get no more than one key.
func TestKeyedBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rate.Bucket{
			N:     rapid.Int64Range(1, 30).Draw(rt, "n"),
			Per:   rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, 999_999_937}).Draw(rt, "per"),
			Burst: rapid.Int64Range(1, 5).Draw(rt, "burst"),
		}
		places := rapid.IntRange(1, 5).Draw(rt, "places")
		gaps := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 0, 0, 0, 5, 100, 700, 3000}), 1, 200).Draw(rt, "gaps")
		key := rapid.IntRange(0, 8)
		keys := rapid.SliceOfN(key, len(gaps), len(gaps)).Draw(rt, "keys")
		admitted := map[string][]start{}
		var all []start
		synctest.Test(t, func(t *testing.T) {
			k := keyed(t, limit, places)
			begin := time.Now()
			var mu sync.Mutex
			book := func(key string, n int64) {
				mu.Lock()
				defer mu.Unlock()
				s := start{time.Since(begin), n}
				admitted[key], all = append(admitted[key], s), append(all, s)
			}
			for i, gap := range gaps {
				time.Sleep(time.Duration(gap) * ms)
				key, n := strconv.Itoa(keys[i]), int64(i)%limit.Burst+1
				if i%5 == 0 {
					go func() {
						if err := k.Wait(t.Context(), key, n); err != nil {
							t.Error(err)
						}
						book(key, n)
					}()
				} else if ok, _ := k.Allow(key, n); ok {
					book(key, n)
				}
			}
			time.Sleep(time.Hour)
			if st := k.Stats(); st.Keys > places || st.Waiting > 0 {
				t.Errorf("%+v", st)
			}
		})
		for key, starts := range admitted {
			if s := beyond(starts, limit); s != "" {
				rt.Fatalf("key %s: %s", key, s)
			}
		}
		// A place that is filled again makes room for another full bucket, so
		// only what comes together is bounded here.
		sum := map[time.Duration]int64{}
		for _, s := range all {
			if sum[s.at] += s.n; sum[s.at] > limit.Burst*int64(places+1) {
				rt.Fatalf("%d at once in %d places", sum[s.at], places)
			}
		}
	})
}

// beyond says where the starts were more than a bucket admits, to the
// nanosecond.
func beyond(starts []start, limit rate.Bucket) string {
	for i := range starts {
		var sum int64
		for _, s := range starts[i:] {
			sum += s.n
			if d := int64(s.at - starts[i].at); (sum-limit.Burst)*int64(limit.Per) > limit.N*d {
				return fmt.Sprintf("%d units of %v in %v", sum, limit, s.at-starts[i].at)
			}
		}
	}
	return ""
}

// Whoever sleeps for exactly the announced time is admitted, never before, and
// the long-term rate is exact (golang/go#34861, golang/go#46579).
func TestKeyedAnnouncedTimeSuffices(t *testing.T) {
	for _, limit := range []rate.Bucket{
		{N: 3, Per: time.Second}, {N: 7, Per: time.Second, Burst: 3}, {N: 3333, Per: 10 * time.Second},
		{N: 1e9, Per: time.Second}, {N: 7e8, Per: time.Second, Burst: 7}, {N: 1, Per: 40 * 365 * 24 * time.Hour},
		{N: 999_999_937, Per: time.Second},
	} {
		bubble(t, func(t *testing.T) {
			k := keyed(t, limit, 1)
			if ok, _ := k.Allow("", max(limit.Burst, 1)); !ok {
				t.Fatalf("%v: refused the burst", limit)
			}
			begin, rounds := time.Now(), int64(10_000)
			if limit.Per > time.Hour {
				rounds = 3
			}
			for i := range rounds {
				ok, after := k.Allow("", 1)
				if after--; ok || after < 0 {
					t.Fatalf("%v: start %d: %v in %v", limit, i, ok, after)
				}
				time.Sleep(after)
				if ok, after := k.Allow("", 1); ok || after != 1 {
					t.Fatalf("%v: start %d before the announced time: %v %v", limit, i, ok, after)
				}
				time.Sleep(time.Nanosecond)
				if ok, _ := k.Allow("", 1); !ok {
					t.Fatalf("%v: start %d refused at its announced time", limit, i)
				}
			}
			want := float64(rounds) / float64(limit.N) * float64(limit.Per)
			// Each time the bucket was full, up to two nanoseconds are lost.
			if d := float64(time.Since(begin)); d < want-2 || d > want+2*float64(rounds) {
				t.Errorf("%v: %d units in %v", limit, rounds, time.Duration(d))
			}
		})
	}
}

// A million keys take their places, and a million others after them: nothing in
// force is forgotten, and what is idle makes room (mholt/caddy-ratelimit#44).
func TestAMillionKeysForgetOnlyWhatIsIdle(t *testing.T) {
	n := 1_000_000
	if race.Enabled {
		n /= 10
	}
	bubble(t, func(t *testing.T) {
		k := keyed(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 100}, n)
		var key []byte
		name := func(i int) string {
			key = strconv.AppendInt(key[:0], int64(i), 10)
			return string(key)
		}
		cost := func(i int) int64 {
			if i%10 == 0 {
				return 100
			}
			return 1
		}
		for i := range n {
			if ok, _ := k.Allow(name(i), cost(i)); !ok {
				t.Fatalf("key %d is refused", i)
			}
		}
		if st := k.Stats(); st.Keys != n || st.Overflowed != 0 {
			t.Fatalf("%+v", st)
		}
		for i := n; i < n+200; i++ {
			if ok, after := k.Allow(name(i), 1); ok != (i < n+100) || !ok && after != time.Hour {
				t.Fatalf("without a place, key %d: %v %v", i, ok, after)
			}
		}
		if st := k.Stats(); st.Keys != n || st.Overflowed != 100 {
			t.Fatalf("%+v", st)
		}
		// Nine of ten are full again, and so is most of what they share.
		time.Sleep(99 * time.Hour)
		for i := n; i < n+n*2/10; i++ {
			if ok, _ := k.Allow(name(i), 1); !ok {
				t.Fatalf("key %d is refused", i)
			}
		}
		// A new key looks at a piece of its shard only: now and then one finds
		// nothing there to forget, and shares once more.
		if st := k.Stats(); st.Keys > n || st.Overflowed < 100 || st.Overflowed > 120 {
			t.Fatalf("%+v", st)
		}
		for i := 0; i < n; i += 50 {
			if ok, after := k.Allow(name(i), 100); ok || after != time.Hour {
				t.Fatalf("key %d was forgotten: %v %v", i, ok, after)
			}
		}
	})
}

// Keys without a place share one more bucket; what they had there counts when
// they get a place.
func TestKeyedOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := keyed(t, rate.Bucket{N: 1, Per: time.Second, Burst: 10}, 2)
		allow := func(key string, n int64, want bool, after time.Duration) {
			t.Helper()
			if ok, d := k.Allow(key, n); ok != want || d != after {
				t.Fatalf("%s: %v %v, want %v %v", key, ok, d, want, after)
			}
		}
		allow("a", 10, true, 0)
		allow("b", 2, true, 0)
		allow("c", 6, true, 0)
		allow("d", 4, true, 0)
		allow("e", 1, false, time.Second)
		time.Sleep(2 * time.Second) // b is full again
		allow("e", 3, false, time.Second)
		allow("e", 2, true, 0)
		allow("e", 1, false, time.Second)
		allow("f", 2, true, 0) // of the shared bucket, whose rest e did not use there
		allow("f", 1, false, time.Second)
		allow("g", 8, false, 8*time.Second)
		if st := k.Stats(); st.Keys != 2 || st.Overflowed != 3 {
			t.Fatalf("%+v", st)
		}
		time.Sleep(time.Minute)
		allow("c", 10, true, 0)
		allow("d", 10, true, 0)
	})
}

// The line of a key is first in, first out, does not hold up other keys, and
// moves up when somebody gives up.
func TestKeyedLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := keyed(t, rate.Bucket{N: 1, Per: time.Second, Burst: 4}, 10)
		k.Allow("a", 4)
		begin := time.Now()
		var mu sync.Mutex
		var order []string
		wait := func(name string, n int64) context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				err := k.Wait(ctx, "a", n)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprint(name, " ", time.Since(begin), " ", err))
			}()
			synctest.Wait()
			return cancel
		}
		defer wait("first", 1)()
		second := wait("second", 3)
		defer wait("third", 1)()
		if ok, after := k.Allow("a", 1); ok || after != 6*time.Second {
			t.Fatal(ok, after)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if err := k.Wait(ctx, "a", 1); !errors.Is(err, rate.ErrDeadline) {
			t.Fatal(err)
		}
		if ok, _ := k.Allow("b", 4); !ok {
			t.Fatal("b has its own bucket")
		}
		time.Sleep(1500 * ms)
		if st := k.Stats(); st.Waiting != 2 {
			t.Fatalf("%+v", st)
		}
		second()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := "[first 1s <nil> second 1.5s context canceled third 2s <nil>]"
		if got := fmt.Sprint(order); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if st := k.Stats(); st.Waiting != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// A clock that begins anew, as in one synctest bubble after another, closes
// nothing for longer than a bucket takes to fill.
func TestKeyedInTwoBubbles(t *testing.T) {
	k := keyed(t, rate.Bucket{N: 2, Per: time.Minute, Burst: 2}, 1)
	k.Allow("a", 1)
	k.Allow("b", 1)
	for range 2 {
		bubble(t, func(t *testing.T) {
			for _, key := range []string{"a", "b", "c"} {
				begin := time.Now()
				if err := k.Wait(t.Context(), key, 2); err != nil || time.Since(begin) > 2*time.Minute {
					t.Fatalf("%s: %v after %v", key, err, time.Since(begin))
				}
			}
			time.Sleep(time.Hour)
			k.Allow("a", 2)
			k.Allow("b", 2)
		})
	}
	if _, after := k.Allow("a", 2); after > time.Minute {
		t.Fatalf("outside again: %v", after)
	}
}

// Many goroutines, few places: no key gets more than it may.
func TestKeyedStress(t *testing.T) {
	const keys = 16
	limit := rate.Bucket{N: 5000, Per: time.Second, Burst: 20}
	k := keyed(t, limit, 8)
	var used [keys]atomic.Int64
	begin := time.Now()
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				key := (g*7 + i*5) % keys
				ctx, cancel := context.Background(), func() {}
				if i%7 == 0 {
					ctx, cancel = context.WithTimeout(ctx, 200*time.Microsecond)
				}
				if i%40 < 2 {
					if k.Wait(ctx, strconv.Itoa(key), 2) == nil {
						used[key].Add(2)
					}
				} else if ok, _ := k.Allow(strconv.Itoa(key), 1); ok {
					used[key].Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	most := float64(limit.Burst) + float64(limit.N)*time.Since(begin).Seconds()
	for key := range used {
		if n := used[key].Load(); float64(n) > most {
			t.Errorf("key %d: %d units, at most %.1f", key, n, most)
		}
	}
	if st := k.Stats(); st.Waiting != 0 || st.Keys > 8 {
		t.Fatalf("%+v", st)
	}
}

// A key that is there, a key that is refused, and a key in another's place
// allocate nothing.
func TestKeyedAllocatesNothing(t *testing.T) {
	k := keyed(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 1}, 10)
	many := keyed(t, rate.Bucket{N: 1e9, Per: time.Second, Burst: 1e9}, 10)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		k.Allow("a", 1)
		many.Allow(strconv.Itoa(i%100), 1)
		many.Wait(context.Background(), "b", 1)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Exactly maxKeys keys have a place of their own at a time, and those that were
// forgotten do not count, however they were.
func TestKeyedPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, most := range []int{1, 4, 30} {
			k, err := rate.NewKeyed(rate.Bucket{N: 1, Per: time.Second, Burst: 1}, most)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 20 {
				for i := range most {
					if ok, _ := k.Allow(fmt.Sprint(round, " ", i), 1); !ok {
						t.Fatalf("%d keys, round %d: key %d is refused", most, round, i)
					}
				}
				if s := k.Stats(); s.Overflowed != 0 || s.Keys > most || s.Limit != (rate.Bucket{N: 1, Per: time.Second, Burst: 1}) {
					t.Fatalf("%d keys, round %d: %+v", most, round, s)
				}
				time.Sleep(2 * time.Second)
			}
		}
	})
}

// Keys that are forgotten while the table is made anew give their places back:
// a few keys at a time, ever others, never meet a full limiter.
func TestKeyedCountsWhatARebuildForgets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := keyed(t, rate.Bucket{N: 1, Per: time.Second, Burst: 1}, 60)
		for i := range 1000 {
			if i%5 == 0 {
				time.Sleep(2 * time.Second) // all before are full again
			}
			if ok, _ := k.Allow(strconv.Itoa(i), 1); !ok {
				t.Fatalf("key %d is refused", i)
			}
			// The table of so few keys has 10 places, at most 7 of them taken.
			if s := k.Stats(); s.Keys > 7 || s.Overflowed != 0 {
				t.Fatalf("key %d: %+v, with 5 in force", i, s)
			}
		}
	})
}
