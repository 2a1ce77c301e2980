package batch

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBreakCancelsAndWaits(t *testing.T) {
	for _, opts := range [][]Option{nil, {Ordered(0)}, {LookAhead(0)}} {
		synctest.Test(t, func(t *testing.T) {
			var running, started, cleaned atomic.Int64
			in := func(yield func(int) bool) {
				defer cleaned.Add(1)
				count(1000)(yield)
			}
			for range over(t.Context(), 5, in, func(ctx context.Context, n int) (int, error) {
				running.Add(1)
				defer running.Add(-1)
				started.Add(1)
				if n > 0 {
					<-ctx.Done()
					time.Sleep(time.Second) // winding up
				}
				return 0, ctx.Err()
			}, opts...) {
				break
			}
			if running.Load() != 0 || cleaned.Load() != 1 || started.Load() > 6 {
				t.Errorf("%d running, %d started, input ended %d times", running.Load(), started.Load(), cleaned.Load())
			}
		})
	}
}

// fatih/semgroup#2, neilotoole/errgroup#6: the wait hung after the context had
// ended during a submission.
func TestCancelReportsWhatWasRead(t *testing.T) {
	for _, c := range []struct {
		opts []Option
		want int
	}{
		{nil, 10},
		{[]Option{Ordered(0)}, 10},
		{[]Option{LookAhead(3)}, 5}, // 1 running, 3 ahead, 1 that was being handed over
	} {
		synctest.Test(t, func(t *testing.T) {
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
			begun := time.Now()
			var ran, not int
			for r := range over(ctx, 1, count(10), sleep(5*time.Second), c.opts...) {
				switch {
				case errors.Is(r.Err, ErrNotStarted) && errors.Is(r.Err, context.Canceled) && errors.Is(r.Err, cause):
					not++
				case r.Err == context.Canceled:
					ran++
				default:
					t.Errorf("got %+v", r)
				}
			}
			if ran != 1 || not != c.want-1 {
				t.Errorf("%v: %d ran and %d did not, want 1 and %d", c.opts, ran, not, c.want-1)
			}
			if took := time.Since(begun); took != 50*time.Millisecond {
				t.Errorf("took %v, want 50ms", took)
			}
		})
	}
}

// What has not started is reported at once, even if the running call is deaf.
func TestCancelDoesNotWaitToReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		n := 0
		for r := range over(ctx, 1, count(10), func(context.Context, int) (int, error) {
			time.Sleep(time.Minute)
			return 0, nil
		}) {
			n++
			want := time.Minute
			if errors.Is(r.Err, ErrNotStarted) && errors.Is(r.Err, context.DeadlineExceeded) {
				want = time.Second
			}
			if at := time.Since(begun); at != want {
				t.Errorf("item %d after %v: %v", r.In, at, r.Err)
			}
		}
		if n != 10 {
			t.Errorf("%d results, want 10", n)
		}
	})
}

func TestEndedContextReadsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for r := range over(ctx, 3, count(1000), func(context.Context, int) (int, error) {
		t.Error("started")
		return 0, nil
	}) {
		if n++; !errors.Is(r.Err, ErrNotStarted) {
			t.Errorf("got %v", r.Err)
		}
	}
	if n > 1 {
		t.Errorf("%d items were read", n)
	}
}

// A read from a terminal cannot be interrupted; the end must not hang on it.
func TestBlockedInputDoesNotHoldTheEnd(t *testing.T) {
	for _, byBreak := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			stdin := make(chan struct{})
			defer close(stdin)
			in := func(yield func(int) bool) {
				yield(0)
				<-stdin
				if yield(1) {
					t.Error("the input was wanted after the end")
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			for range over(ctx, 3, in, double) {
				if byBreak {
					break
				}
			}
			want := grace
			if !byBreak {
				want += time.Minute
			}
			if took := time.Since(begun); took != want {
				t.Errorf("took %v, want %v", took, want)
			}
		})
	}
}

// In real time and at every point: nothing runs after the loop.
func TestBreakAnywhere(t *testing.T) {
	for _, opts := range [][]Option{nil, {LookAhead(0)}, {Ordered(0)}, {Ordered(5)}} {
		for stop := range 60 {
			var busy atomic.Int64
			in := func(yield func(int) bool) {
				busy.Add(1)
				defer busy.Add(-1)
				count(50)(yield)
			}
			n := 0
			for range over(t.Context(), 4, in, func(_ context.Context, n int) (int, error) {
				busy.Add(1)
				defer busy.Add(-1)
				if n%7 == 0 {
					runtime.Gosched()
				}
				return n, nil
			}, opts...) {
				if n == stop {
					break
				}
				n++
			}
			if n != min(stop, 50) || busy.Load() != 0 {
				t.Fatalf("stop at %d: %d results, %d still busy", stop, n, busy.Load())
			}
		}
	}
}

// An item for which there was no room is reported when ctx ends, and an input
// that blocks after such an item does not hold the end.
func TestHeldItemAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin := make(chan struct{})
		defer close(stdin)
		in := func(yield func(int) bool) {
			count(5)(yield)
			<-stdin
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n, begun := 0, time.Now()
		for range over(ctx, 1, in, sleep(time.Second), LookAhead(0)) {
			n++
		}
		if took := time.Since(begun); n != 5 || took != time.Minute+grace {
			t.Errorf("%d results in %v", n, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStream(ctx, job[int, int, int]{options: newOptions(nil)})
		s.held = true
		cancel()
		ended := false
		go func() {
			s.collect(&chain[int, int, int]{}, -1)
			ended = true
		}()
		synctest.Wait()
		if ended {
			t.Error("the loop did not wait for the item in the producer's hands")
		}
		s.mu.Lock()
		s.held, s.consumer.waiting = false, false
		s.mu.Unlock()
		s.consumer.wake(true)
	})
}
