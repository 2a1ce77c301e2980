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
