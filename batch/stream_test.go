package batch

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

// sleep is a call of that length, which heeds its context.
func sleep(d time.Duration) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		select {
		case <-time.After(d):
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func TestEveryItemOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 20} {
		for _, opts := range [][]Option{nil, {LookAhead(0)}, {Ordered(0)}, {Ordered(1)}, {Ordered(3)}, {Workers(3)}} {
			const n = 5000
			var seen [n]int
			ordered := newOptions(opts).ordered
			next := 0
			for r := range over(t.Context(), workers, count(n), double, opts...) {
				if r.Err != nil || r.Out != 2*r.In || r.Index != int64(r.In) {
					t.Fatalf("got %+v", r)
				}
				if ordered && r.In != next {
					t.Fatalf("got item %d, want %d", r.In, next)
				}
				seen[r.In]++
				next++
			}
			for i, k := range seen {
				if k != 1 {
					t.Fatalf("%d workers: item %d came %d times", workers, i, k)
				}
			}
		}
	}
}

func TestEmptyInputAndTwoLoops(t *testing.T) {
	for range over(t.Context(), 3, count(0), double) {
		t.Error("a result of nothing")
	}
	results := over(t.Context(), 3, count(10), double)
	for range 2 {
		n := 0
		for range results {
			n++
		}
		if n != 10 {
			t.Errorf("%d results, want 10", n)
		}
	}
}

func TestWorkersRunAtOnceAndNoMore(t *testing.T) {
	for _, c := range []struct {
		permits int
		opts    []Option
		want    int
	}{
		{5, nil, 5},
		{5, []Option{Workers(3)}, 3},
		{5, []Option{LookAhead(0)}, 5},
		{5, []Option{Ordered(2)}, 2},
		{0, nil, runtime.GOMAXPROCS(0)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var now, peak atomic.Int64
			begun := time.Now()
			for range over(t.Context(), c.permits, count(10*c.want), func(ctx context.Context, n int) (int, error) {
				if k := now.Add(1); k > peak.Load() {
					peak.Store(k)
				}
				defer now.Add(-1)
				time.Sleep(50 * time.Millisecond)
				return n, nil
			}, c.opts...) {
			}
			if peak.Load() != int64(c.want) {
				t.Errorf("%+v: peak %d", c, peak.Load())
			}
			if took := time.Since(begun); took != 500*time.Millisecond {
				t.Errorf("%+v: took %v, want 500ms", c, took)
			}
		})
	}
}

// tejzpr/ordered-concurrently#8, cilium/workerpool#30: one slow item piled up
// all later results.
func TestOrderedWindowHoldsTheInputBack(t *testing.T) {
	const n, slow, window = 100_000, 4, 1000
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var read atomic.Int64
		in := func(yield func(int) bool) {
			for i := range n {
				read.Store(int64(i))
				if !yield(i) {
					return
				}
			}
		}
		go func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			// One more item is in the hands of the producer, not taken.
			if got := read.Load(); got < slow+window-1 || got > slow+window {
				t.Errorf("read up to item %d while item %d blocks, window %d", got, slow, window)
			}
			runtime.GC()
			var mem runtime.MemStats
			if runtime.ReadMemStats(&mem); mem.HeapAlloc > 50<<20 {
				t.Errorf("%d bytes on the heap while item %d blocks", mem.HeapAlloc, slow)
			}
			close(release)
		}()
		next := 0
		for r := range over(t.Context(), 10, in, func(_ context.Context, i int) ([]byte, error) {
			if i == slow {
				<-release
			}
			return make([]byte, 1024), nil
		}, Ordered(window)) {
			if r.In != next {
				t.Fatalf("got item %d, want %d", r.In, next)
			}
			next++
		}
		if next != n {
			t.Errorf("%d results, want %d", next, n)
		}
	})
}

// gammazero/workerpool#30, housepower/clickhouse_sinker#73, sourcegraph/conc#61:
// a fast producer filled an unbounded queue.
func TestInputIsHeldBack(t *testing.T) {
	for _, c := range []struct {
		opts []Option
		most int64
	}{
		{nil, 2 + 256},
		{[]Option{LookAhead(7)}, 2 + 7},
		{[]Option{LookAhead(0)}, 2},
		{[]Option{Ordered(5)}, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked, got int64
			endless := func(yield func(int) bool) {
				for i := 0; ; i++ {
					asked++
					if !yield(i) {
						return
					}
				}
			}
			begun := time.Now()
			for range over(t.Context(), 2, endless, sleep(time.Second), c.opts...) {
				synctest.Wait()
				// The body is still busy with result got, so that is out, too.
				// The producer may hold one item that there is no room for.
				if asked > got+c.most+1 {
					t.Fatalf("asked for %d after %d results, want at most %d more", asked, got, c.most)
				}
				if got++; time.Since(begun) >= 10*time.Second {
					break
				}
			}
			if got < 19 {
				t.Errorf("%d results in 10s, want 20 or so", got)
			}
		})
	}
}

func TestSlowLoopHoldsTheCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int64
		got := int64(0)
		for range over(t.Context(), 2, count(100), func(context.Context, int) (int, error) {
			started.Add(1)
			return 0, nil
		}, LookAhead(3)) {
			synctest.Wait()
			if s := started.Load(); s > got+5 {
				t.Fatalf("%d started after %d results", s, got)
			}
			got++
		}
	})
}

// An input that blocks must not hold up the results there are.
func TestBlockedInputDoesNotHoldUpResults(t *testing.T) {
	for _, opts := range [][]Option{nil, {Ordered(0)}} {
		synctest.Test(t, func(t *testing.T) {
			in := func(yield func(int) bool) {
				for i := range 3 {
					if !yield(i) {
						return
					}
					time.Sleep(time.Hour)
				}
			}
			begun := time.Now()
			for r := range over(t.Context(), 4, in, double, opts...) {
				if at := time.Since(begun); at != time.Duration(r.In)*time.Hour {
					t.Errorf("result %d after %v", r.In, at)
				}
			}
		})
	}
}

// No item waits for others: each of these is needed before the next one comes.
func TestNothingWaitsForABatch(t *testing.T) {
	next := make(chan int, 1)
	in := func(yield func(int) bool) {
		for i := range next {
			if !yield(i) {
				return
			}
		}
	}
	next <- 0
	for r := range over(t.Context(), 20, in, double) {
		if r.In == 2000 {
			close(next)
			break
		}
		next <- r.In + 1
	}
}

func TestLongCallsDoNotHoldOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		for r := range over(t.Context(), 4, count(1000), func(ctx context.Context, n int) (int, error) {
			if n < 3 {
				time.Sleep(time.Hour)
			} else {
				time.Sleep(time.Second)
			}
			return 0, nil
		}) {
			at := time.Since(begun)
			if r.In >= 3 && at != time.Duration(r.In-2)*time.Second {
				t.Errorf("item %d after %v", r.In, at)
			}
		}
	})
}

func TestNoAllocationForAnItem(t *testing.T) {
	run := func(n int) float64 {
		return testing.AllocsPerRun(3, func() {
			for range over(context.Background(), 20, count(n), double) {
			}
		})
	}
	small, large := run(10_000), run(110_000)
	if per := (large - small) / 100_000; per > 0.001 {
		t.Errorf("%.4f allocations an item", per)
	}
}

func TestResultsAreNotKept(t *testing.T) {
	const n = 100
	var kept []weak.Pointer[[64]byte]
	for r := range over(t.Context(), 1, count(n), func(context.Context, int) (*[64]byte, error) {
		return new([64]byte), nil
	}, Ordered(0)) {
		kept = append(kept, weak.Make(r.Out))
		if r.In < n-1 {
			continue
		}
		runtime.GC()
		for i, p := range kept[:n-1] {
			if p.Value() != nil {
				t.Errorf("result %d is still in memory", i)
			}
		}
	}
}

// A list keeps its cells in order, however they were added.
func TestChain(t *testing.T) {
	var a, b chain[int, int, int]
	for _, list := range []struct {
		at *chain[int, int, int]
		in []int
	}{{&b, []int{1, 2}}, {&a, nil}, {&b, []int{3}}, {&a, []int{4}}} {
		for _, n := range list.in {
			c := &cell[int, int, int]{}
			c.In = n
			list.at.push(c)
		}
		a.prepend(&b)
	}
	var got []int
	for c := a.pop(); c != nil; c = a.pop() {
		got = append(got, c.In)
	}
	if !slices.Equal(got, []int{3, 1, 2, 4}) || a.n != 0 {
		t.Errorf("%v, %d left", got, a.n)
	}
}
