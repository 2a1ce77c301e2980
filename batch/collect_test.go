package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
)

func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Concurrency: 4})
		slow := func(ctx context.Context, n int) (int, error) {
			time.Sleep(time.Duration(10-n%10) * time.Millisecond)
			return n * n, nil
		}
		out, err := batch.Collect(t.Context(), g, slices.Values(numbers(100)), slow)
		if err != nil || len(out) != 100 {
			t.Fatalf("%d results, %v", len(out), err)
		}
		for n, v := range out {
			if v != n*n {
				t.Errorf("result %d is %d", n, v)
			}
		}
		// Fail fast: the others see it and nothing further starts.
		var started, cancelled atomic.Int64
		boom := errors.New("boom")
		fail := func(ctx context.Context, n int) (int, error) {
			started.Add(1)
			if n == 5 {
				time.Sleep(time.Millisecond)
				return 0, boom
			}
			select {
			case <-ctx.Done():
				cancelled.Add(1)
				return 0, ctx.Err()
			case <-time.After(time.Duration(1+n) * time.Second):
				return n, nil
			}
		}
		start := time.Now()
		if out, err := batch.Collect(t.Context(), g, slices.Values([]int{9, 9, 9, 5, 9, 9, 9}), fail); err != boom || out != nil {
			t.Errorf("%v, %v", out, err)
		}
		if d := time.Since(start); d != time.Millisecond || cancelled.Load() != started.Load()-1 {
			t.Errorf("after %v: %d of %d were cancelled", d, cancelled.Load(), started.Load())
		}
		// Collect all: every error is there, and every result.
		out, err = batch.CollectAll(t.Context(), g, slices.Values([]int{1, 5, 2, 5}), fail)
		if !errors.Is(err, boom) || !slices.Equal(out, []int{1, 0, 2, 0}) {
			t.Errorf("%v, %v", out, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := batch.CollectAll(ctx, g, slices.Values(numbers(3)), slow); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func ExampleCollect() {
	g, _ := mete.New(mete.Config{Name: "geocoder", Concurrency: 2})
	lengths, err := batch.Collect(context.Background(), g, slices.Values([]string{"Oslo", "Reykjavík"}),
		func(_ context.Context, place string) (int, error) { return len([]rune(place)), nil })
	fmt.Println(lengths, err)
	// Output: [4 9] <nil>
}

// Also where nothing was read, the end of the context is no success.
func TestCollectOfACanceledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		blocked := func(func(int) bool) { <-ctx.Done() }
		same := func(_ context.Context, n int) (int, error) { return n, nil }
		if out, err := batch.Collect(ctx, nil, blocked, same); !errors.Is(err, context.DeadlineExceeded) || len(out) != 0 {
			t.Errorf("Collect: %v, %v", out, err)
		}
		if out, err := batch.CollectAll(ctx, nil, blocked, same); !errors.Is(err, context.DeadlineExceeded) || len(out) != 0 {
			t.Errorf("CollectAll: %v, %v", out, err)
		}
	})
}

// A stream waits for as long as it takes: the gate's MaxWait is for callers.
func TestMaxWaitDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Concurrency: 1, MaxWait: time.Second})
		slow := func(_ context.Context, n int) (int, error) { time.Sleep(time.Minute); return n, nil }
		for r := range batch.Map(t.Context(), g, slices.Values(numbers(5)), slow, batch.Workers(5)) {
			if r.Err != nil {
				t.Errorf("item %d: %v", r.Index, r.Err)
			}
		}
	})
}

// A gate's workers are counted also when a hundred other gates had their turn
// meanwhile.
func TestWorkersOfAGateThatWasQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gates []*mete.Gate
		for range 100 {
			gates = append(gates, gate(t, mete.Config{Concurrency: 5}))
		}
		items := append(numbers(100), 0, 0, 0)
		var running atomic.Int64
		call := func(_ context.Context, n int) (int, error) {
			if n == 0 {
				if running.Add(1) > 1 {
					t.Error("two calls of one worker")
				}
				time.Sleep(time.Hour)
				running.Add(-1)
			}
			return n, nil
		}
		n := 0
		for r := range batch.MapBy(t.Context(), func(n int) *mete.Gate { return gates[n] }, slices.Values(items), call, batch.Workers(1), batch.LookAhead(4)) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			n++
		}
		if n != len(items) {
			t.Errorf("%d results of %d", n, len(items))
		}
	})
}
