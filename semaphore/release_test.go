package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/semaphore"
)

// A release that falls between the failed try and the getting in line is seen.
func TestReleaseBeforeLine(t *testing.T) {
	s := semaphore.New(1)
	held := must(t, s, 1)
	hook := &pausedContext{Context: t.Context(), asked: make(chan struct{}), resume: make(chan struct{})}
	c := make(chan semaphore.Permit)
	go func() {
		p, _ := s.Acquire(hook, 1)
		c <- p
	}()
	<-hook.asked
	held.Release()
	close(hook.resume)
	(<-c).Release()
	counts(t, s, 0, 0)
}

// A release beside the getting in line is seen by one of the two.
func TestReleaseMeetsLine(t *testing.T) {
	s := semaphore.New(1)
	p := must(t, s, 1)
	next := make(chan semaphore.Permit)
	turn := make(chan struct{})
	go func() {
		for range turn {
			p, _ := s.Acquire(context.Background(), 1)
			next <- p
		}
	}()
	for i := range 50_000 {
		turn <- struct{}{}
		for range i % 64 { // at another moment each time
			s.TryAcquire(1)
		}
		p.Release()
		p = <-next
	}
	close(turn)
	p.Release()
	counts(t, s, 0, 0)
}

// vercel/async-sema#36: what was not acquired cannot be released.
func TestZeroPermit(t *testing.T) {
	s := semaphore.New(1)
	var none semaphore.Permit
	none.Release()
	counts(t, s, 0, 0)
	p := must(t, s, 1)
	refused, ok := s.TryAcquire(1)
	if ok {
		t.Fatal("two of one")
	}
	refused.Release()
	refused.Release()
	counts(t, s, 1, 0)
	if p.Weight() != 1 || none.Weight() != 0 {
		t.Fatalf("weights %d, %d", p.Weight(), none.Weight())
	}
	p.Release()
}

// llm-d/llm-d-batch-gateway#206, resilience4j/resilience4j#264: one permit
// released twice, and from everywhere at once.
func TestReleaseOnce(t *testing.T) {
	for _, n := range []int64{1, 3} { // the hot slot and another
		s := semaphore.New(2 * n)
		p1, p2 := must(t, s, n), must(t, s, n)
		var all sync.WaitGroup
		for range 50 {
			all.Go(p1.Release)
		}
		all.Wait()
		if st := s.Stats(); st.InUse != n || st.Misuse != 49 {
			t.Fatalf("%+v", st)
		}
		// A later holder of the same slot does not feel the old copies.
		p3 := must(t, s, n)
		p1.Release()
		if st := s.Stats(); st.InUse != 2*n || st.Misuse != 50 {
			t.Fatalf("%+v", st)
		}
		p2.Release()
		p3.Release()
		p3.Release()
		if st := s.Stats(); st.InUse != 0 || st.Misuse != 51 {
			t.Fatalf("%+v", st)
		}
		must(t, s, 2*n)
	}
}

// openllb/hlb#320, oras-project/oras-go#363: the deferred release runs although
// the acquire failed.
func TestReleaseAfterFailedAcquire(t *testing.T) {
	s := semaphore.New(1)
	held := must(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := s.Acquire(ctx, 1)
	if err == nil {
		t.Fatal("acquired")
	}
	p.Release()
	p.Release()
	p.Release()
	counts(t, s, 1, 0)
	held.Release()
}

// llm-d/llm-d-batch-gateway#206, hatchet-dev/hatchet#380: however the work
// ends, the permit comes back.
func TestDo(t *testing.T) {
	s := semaphore.New(2)
	boom, fault := fmt.Errorf("boom"), fmt.Errorf("fault")
	for i := range 100 {
		var err error
		var recovered any
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { recovered = recover() }()
			err = s.Do(t.Context(), 2, func() error {
				if s.Stats().InUse != 2 {
					t.Error("not held")
				}
				switch i % 4 {
				case 1:
					return fault
				case 2:
					panic(boom)
				case 3:
					runtime.Goexit()
				}
				return nil
			})
		}()
		<-done
		if i%4 == 2 && recovered != any(boom) || i%4 == 1 && err != fault {
			t.Fatalf("round %d: %v, %v", i, recovered, err)
		}
		counts(t, s, 0, 0)
	}
	if err := s.Do(t.Context(), 3, nil); !errors.Is(err, semaphore.ErrTooLarge) {
		t.Fatal(err)
	}
}

func TestAllocations(t *testing.T) {
	s := semaphore.New(10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, n := range []int64{1, 2} {
		if a := testing.AllocsPerRun(1000, func() {
			p, _ := s.Acquire(ctx, n)
			q, _ := s.AcquireWithin(context.Background(), n, time.Second)
			r, _ := s.TryAcquire(n)
			p.Release()
			q.Release()
			r.Release()
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
	}
}

// A waiter costs two allocations of at most 400 bytes together.
func TestWaiterAllocations(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) {
		s := semaphore.New(1)
		next := make(chan semaphore.Permit)
		ask := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ctx.Done()
		go func() {
			for range ask {
				p, _ := s.Acquire(ctx, 1)
				next <- p
			}
		}()
		defer close(ask)
		p, _ := s.TryAcquire(1)
		b.ReportAllocs()
		for b.Loop() {
			ask <- struct{}{}
			for s.Stats().Waiting == 0 {
				runtime.Gosched()
			}
			p.Release()
			p = <-next
		}
	})
	if r.AllocsPerOp() > 2 || r.AllocedBytesPerOp() > 400 {
		t.Errorf("%d allocations, %d bytes", r.AllocsPerOp(), r.AllocedBytesPerOp())
	}
}
