package semaphore_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/metehq/mete/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acquired starts an acquire and returns the channel of its result. In a
// bubble, it is in line or done when acquired returns.
func acquired(ctx context.Context, s *semaphore.Semaphore, n int64) <-chan result {
	c := make(chan result, 1)
	go func() {
		p, err := s.Acquire(ctx, n)
		c <- result{p, err}
	}()
	synctest.Wait()
	return c
}

type result struct {
	p   semaphore.Permit
	err error
}

func must(t *testing.T, s *semaphore.Semaphore, n int64) semaphore.Permit {
	t.Helper()
	p, ok := s.TryAcquire(n)
	if !ok {
		t.Fatalf("no %d of %+v", n, s.Stats())
	}
	return p
}

// granted returns the permit that c must hold by now.
func granted(t *testing.T, c <-chan result) semaphore.Permit {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		if r.err != nil {
			t.Fatalf("refused: %v", r.err)
		}
		return r.p
	default:
		t.Fatal("still in line")
		return semaphore.Permit{}
	}
}

// failed returns the error that c must hold by now.
func failed(t *testing.T, c <-chan result) error {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		if r.err == nil {
			t.Fatal("granted")
		}
		r.p.Release() // harmless
		return r.err
	default:
		t.Fatal("still in line")
		return nil
	}
}

func inLine(t *testing.T, cs ...<-chan result) {
	t.Helper()
	synctest.Wait()
	for i, c := range cs {
		select {
		case r := <-c:
			t.Fatalf("waiter %d left the line: %+v", i, r)
		default:
		}
	}
}

func counts(t *testing.T, s *semaphore.Semaphore, inUse int64, waiting int) {
	t.Helper()
	if st := s.Stats(); st.InUse != inUse || st.Waiting != waiting {
		t.Fatalf("%+v, want %d in use and %d waiting", st, inUse, waiting)
	}
}

// agronholm/anyio#1170, aio-libs/aiohttp#4936: between the release and the
// waking of the waiter nobody else gets in.
func TestTryDoesNotBarge(t *testing.T) {
	s := semaphore.New(1)
	next := must(t, s, 1)
	for range 20_000 {
		p, b := next, make(chan semaphore.Permit)
		go func() {
			p, _ := s.Acquire(context.Background(), 1)
			b <- p
		}()
		for s.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		p.Release()
		if _, ok := s.TryAcquire(1); ok {
			t.Fatal("barged in")
		}
		if st := s.Stats(); st.InUse != 1 {
			t.Fatalf("%+v", st)
		}
		next = <-b
	}
	next.Release()
}

// golang/go#56910, NVIDIA/cccl#450: the order is that of arrival. Light work
// neither passes a heavy waiter nor starves it.
func TestHeavyWaiterIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(10)
		start := time.Now()
		var heavy time.Duration
		var all sync.WaitGroup
		for i := range 400 { // 200/s for 2 s, 50 ms each
			all.Go(func() {
				arrived := time.Duration(i) * 5 * time.Millisecond
				time.Sleep(arrived)
				p, _ := s.Acquire(t.Context(), 1)
				if started := time.Since(start); arrived > time.Second && started < heavy || arrived > time.Second && heavy == 0 {
					t.Errorf("passed the heavy waiter at %v", started)
				}
				time.Sleep(50 * time.Millisecond)
				p.Release()
			})
		}
		all.Go(func() {
			time.Sleep(time.Second)
			p, _ := s.Acquire(t.Context(), 10)
			heavy = time.Since(start)
			p.Release()
		})
		all.Wait()
		if heavy < time.Second || heavy > 1100*time.Millisecond {
			t.Errorf("the heavy one started at %v", heavy)
		}
	})
}

// Light callers that never stop asking, without waiting, do not starve the
// heavy one either.
func TestSpinningDoesNotStarve(t *testing.T) {
	s := semaphore.New(4)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if p, ok := s.TryAcquire(1); ok {
					runtime.Gosched()
					p.Release()
				}
				runtime.Gosched()
			}
		})
	}
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		p, err := s.Acquire(ctx, 4)
		if err != nil {
			t.Fatal(err)
		}
		p.Release()
		cancel()
	}
	close(stop)
	all.Wait()
	counts(t, s, 0, 0)
}

func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		p := must(t, s, 1)
		var line []<-chan result
		for range 100 {
			line = append(line, acquired(t.Context(), s, 1))
		}
		for i := range line {
			p.Release()
			p = granted(t, line[i])
			inLine(t, line[i+1:]...)
		}
		p.Release()
	})
}
