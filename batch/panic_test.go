package batch

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// llm-d/llm-d-batch-gateway#206, hibiken/asynq#1089: a panic took the worker
// with it, or the whole process.
func TestPanicsAsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var running atomic.Int64
		var results, panics int
		begun := time.Now()
		for r := range over(t.Context(), 8, count(1000), func(_ context.Context, n int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			time.Sleep(10 * time.Millisecond)
			if n%10 == 0 {
				panic(boom)
			}
			return n, nil
		}, PanicsAsErrors()) {
			results++
			if r.Err == nil {
				continue
			}
			panics++
			p, ok := errors.AsType[*PanicError](r.Err)
			if !ok || p.Value != any(boom) || !errors.Is(r.Err, boom) || !strings.Contains(string(p.Stack), "TestPanicsAsErrors") {
				t.Fatalf("got %v", r.Err)
			}
		}
		if results != 1000 || panics != 100 || running.Load() != 0 {
			t.Errorf("%d results, %d panics, %d running; want 1000, 100, 0", results, panics, running.Load())
		}
		// No worker was lost on the way.
		if took := time.Since(begun); took != 1250*time.Millisecond {
			t.Errorf("took %v, want 1.25s", took)
		}
	})
}

func raised(f func()) (p *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			p = v.(*PanicError)
		}
	}()
	f()
	return nil
}

func TestPanicIsRaisedInTheLoop(t *testing.T) {
	var running atomic.Int64
	next := 0
	p := raised(func() {
		for range over(t.Context(), 8, count(1000), func(ctx context.Context, n int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if n == 500 {
				panic(n)
			}
			return n, nil
		}, Ordered(0)) {
			next++
		}
	})
	if p == nil || p.Value != 500 || !strings.Contains(p.Error(), "panic_test.go") || p.Unwrap() != nil {
		t.Errorf("raised %v", p)
	}
	if next != 500 || running.Load() != 0 {
		t.Errorf("%d results before it and %d running after it, want 500 and 0", next, running.Load())
	}
}

func TestPanicOfADroppedResultIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := raised(func() {
			for range over(t.Context(), 2, count(2), func(ctx context.Context, n int) (int, error) {
				if n == 1 {
					<-ctx.Done()
					panic("late")
				}
				return n, nil
			}) {
				break
			}
		})
		if p == nil || p.Value != "late" {
			t.Errorf("raised %v", p)
		}
	})
}

func TestNestedPanicIsNotWrappedTwice(t *testing.T) {
	p := raised(func() {
		for range over(t.Context(), 2, count(1), func(ctx context.Context, n int) (int, error) {
			for range over(ctx, 2, count(1), func(context.Context, int) (int, error) { panic("inner") }) {
			}
			return 0, nil
		}) {
		}
	})
	if p == nil || p.Value != "inner" {
		t.Errorf("raised %v", p)
	}
}

func TestInputPanicIsRaisedAfterItsResults(t *testing.T) {
	in := func(yield func(int) bool) {
		for i := range 10 {
			yield(i)
		}
		panic("input")
	}
	n := 0
	p := raised(func() {
		for range over(t.Context(), 3, in, double) {
			n++
		}
	})
	if p == nil || p.Value != "input" || n != 10 {
		t.Errorf("raised %v after %d results", p, n)
	}
}

func TestGoexitOfTheInputEndsTheLoopsGoroutine(t *testing.T) {
	ended := make(chan bool)
	go func() {
		after := false
		defer func() { ended <- after }()
		for range over(t.Context(), 3, func(yield func(int) bool) { yield(1); runtime.Goexit() }, double) {
		}
		after = true
	}()
	if <-ended {
		t.Error("the loop went on")
	}
}

func TestGoexitEndsOnlyItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad, good int
		begun := time.Now()
		for r := range over(t.Context(), 2, count(100), func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Second)
			if n%2 == 0 {
				runtime.Goexit()
			}
			return n, nil
		}) {
			switch {
			case r.Err == nil:
				good++
			case r.In%2 == 0 && errors.Is(r.Err, ErrGoexit):
				bad++
			}
		}
		if took := time.Since(begun); good != 50 || bad != 50 || took != 50*time.Second {
			t.Errorf("%d good, %d bad in %v; want 50, 50 in 50s", good, bad, took)
		}
	})
}

func TestPanicOfTheBodyCleansUp(t *testing.T) {
	var running atomic.Int64
	func() {
		defer func() {
			if v := recover(); v != "body" || running.Load() != 0 {
				t.Errorf("recovered %v with %d running", v, running.Load())
			}
		}()
		for range over(t.Context(), 5, count(1000), func(ctx context.Context, n int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if n > 0 {
				<-ctx.Done()
			}
			return n, nil
		}) {
			panic("body")
		}
	}()
}

// The panic of an input that the end of the loop did not wait for goes on: there
// is nobody left to be told, and it must not be lost.
func TestPanicOfAnAbandonedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, got := make(chan struct{}), make(chan any)
		s := newStream(t.Context(), job[int, int, int]{options: newOptions(nil)})
		go func() {
			defer func() { got <- recover() }()
			s.produce(func(func(int) bool) {
				<-stdin
				panic("late")
			})
		}()
		begun := time.Now()
		s.close()
		if took := time.Since(begun); took != grace {
			t.Errorf("the end took %v", took)
		}
		close(stdin)
		if v := <-got; v != "late" {
			t.Errorf("the panic went on as %v", v)
		}
	})
}
