package batch_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
)

func gate(t *testing.T, cfg mete.Config) *mete.Gate {
	t.Helper()
	g, err := mete.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func numbers(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestMapHasTheWorkersOfItsGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Name: "five", Concurrency: 5})
		defer g.Close()
		var peak atomic.Int64
		begun := time.Now()
		n := 0
		for r := range batch.Map(t.Context(), g, slices.Values(numbers(50)), func(_ context.Context, i int) (int, error) {
			peak.Store(max(peak.Load(), int64(g.Stats().InUse)))
			time.Sleep(50 * time.Millisecond)
			return i, nil
		}) {
			if r.Err != nil || r.Out != r.In {
				t.Errorf("got %+v", r)
			}
			if w := g.Stats().Waiting; w > 0 {
				t.Errorf("%d workers wait for permits", w)
			}
			n++
		}
		if took := time.Since(begun); n != 50 || peak.Load() != 5 || took != 500*time.Millisecond {
			t.Errorf("%d results, peak %d, %v; want 50, 5, 500ms", n, peak.Load(), took)
		}
	})
}

// However a call ends, its permit comes back.
func TestPermitsComeBack(t *testing.T) {
	g := gate(t, mete.Config{Name: "two", Concurrency: 2})
	defer g.Close()
	want := map[int]error{1: errors.New("no"), 2: batch.ErrGoexit}
	for r := range batch.Map(t.Context(), g, slices.Values(numbers(100)), func(_ context.Context, i int) (int, error) {
		switch i % 4 {
		case 1:
			return 0, want[1]
		case 2:
			runtime.Goexit()
		case 3:
			panic("no")
		}
		return i, nil
	}, batch.PanicsAsErrors()) {
		_, panicked := errors.AsType[*batch.PanicError](r.Err)
		if panicked != (r.In%4 == 3) || !panicked && !errors.Is(r.Err, want[r.In%4]) {
			t.Errorf("item %d: %v", r.In, r.Err)
		}
	}
	if s := g.Stats(); s.InUse != 0 || s.Attempts != 100 {
		t.Errorf("in use %d after %d attempts", s.InUse, s.Attempts)
	}
}

// sidekiq/sidekiq#4744, grafana/agent#5751: a throttled host held all workers.
func TestMapByGoesOnBesideAThrottledHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[string]*mete.Gate{}
		for _, host := range []string{"slow.test", "fast.test"} {
			gates[host] = gate(t, mete.Config{Name: host, Concurrency: 10, Retry: mete.Retry{Attempts: 4}})
			defer gates[host].Close()
		}
		rows := slices.Concat(slices.Repeat([]string{"slow.test"}, 100), slices.Repeat([]string{"fast.test"}, 100))
		begun := time.Now()
		var fast, slow int
		for r := range batch.MapBy(t.Context(), func(host string) *mete.Gate { return gates[host] }, slices.Values(rows),
			func(_ context.Context, host string) (int, error) {
				if host == "slow.test" && time.Since(begun) < time.Minute {
					return 0, mete.After(errors.New("429 Too Many Requests"), time.Minute-time.Since(begun))
				}
				time.Sleep(200 * time.Millisecond)
				return 200, nil
			}) {
			at := time.Since(begun)
			switch {
			case r.Err != nil:
				t.Errorf("%s: %v", r.In, r.Err)
			case r.In == "fast.test":
				if fast++; at >= 10*time.Second {
					t.Errorf("a fast row after %v", at)
				}
			default:
				if slow++; at < time.Minute {
					t.Errorf("a slow row after %v", at)
				}
			}
		}
		if fast != 100 || slow != 100 {
			t.Errorf("%d fast and %d slow rows", fast, slow)
		}
	})
}

func TestCallIsWhatTheGateIsAskedFor(t *testing.T) {
	g := gate(t, mete.Config{Name: "one", Concurrency: 1})
	defer g.Close()
	n := 0
	for r := range batch.Map(t.Context(), g, slices.Values(numbers(3)), func(_ context.Context, i int) (int, error) {
		return i, nil
	}, batch.Call(mete.Call{Weight: 2})) {
		if !errors.Is(r.Err, mete.ErrTooLarge) {
			t.Errorf("a weight of 2 of 1: %v", r.Err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d results", n)
	}
}

func TestWhatIsNotStartedIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Name: "one", Concurrency: 1})
		defer g.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		sent := 0
		n := 0
		for r := range batch.Map(ctx, g, slices.Values(numbers(10)), func(ctx context.Context, i int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}) {
			if n++; mete.Sent(r.Err) {
				sent++
			}
		}
		if n != 10 || sent != 1 {
			t.Errorf("%d results, %d of them may have been sent; want 10 and 1", n, sent)
		}
	})
}

func BenchmarkMap(b *testing.B) {
	for name, cfg := range map[string]*mete.Config{
		"none":        nil,
		"concurrency": {Name: "c", Concurrency: 20},
	} {
		b.Run(name, func(b *testing.B) {
			var g *mete.Gate
			if cfg != nil {
				var err error
				if g, err = mete.New(*cfg); err != nil {
					b.Fatal(err)
				}
				defer g.Close()
			}
			in := func(yield func(int) bool) {
				for i := range b.N {
					if !yield(i) {
						return
					}
				}
			}
			b.ReportAllocs()
			for range batch.Map(context.Background(), g, in, func(_ context.Context, i int) (int, error) { return i, nil }, batch.Workers(20)) {
			}
		})
	}
}

// A call that goes through the gate by itself is admitted once.
func TestUngatedCallsAskTheGateThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := mete.New(mete.Config{Name: "own", Concurrency: 2})
		if err != nil {
			t.Fatal(err)
		}
		double := func(ctx context.Context, n int) (int, error) {
			return mete.Get(ctx, g, mete.Call{}, func(context.Context) (int, error) {
				time.Sleep(time.Second)
				return 2 * n, nil
			})
		}
		start, sum := time.Now(), 0
		for r := range batch.Map(t.Context(), g, slices.Values([]int{1, 2, 3, 4}), double, batch.Ungated()) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			sum += r.Out
		}
		if d := time.Since(start); sum != 20 || d != 2*time.Second || g.Stats().Attempts != 4 {
			t.Errorf("sum %d after %v, %d attempts", sum, d, g.Stats().Attempts)
		}
		for r := range batch.Map(t.Context(), g, slices.Values([]int{1}), double) {
			if !errors.Is(r.Err, mete.ErrNested) {
				t.Errorf("gated twice: %v", r.Err)
			}
		}
	})
}
