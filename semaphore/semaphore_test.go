package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
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

// golang/go#37852: the waiter at the head leaves, and those behind it fit.
func TestLeavingWakesFollowers(t *testing.T) {
	leave := map[string]func(s *semaphore.Semaphore, cancel func()){
		"canceled": func(_ *semaphore.Semaphore, cancel func()) { cancel() },
		"timeout":  func(*semaphore.Semaphore, func()) { time.Sleep(100 * time.Millisecond) },
		"lowered":  func(s *semaphore.Semaphore, _ func()) { s.Resize(4); s.Resize(10) },
	}
	for name, leave := range leave {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := semaphore.New(10)
				a := must(t, s, 8)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				big := make(chan result, 1)
				go func() {
					p, err := s.AcquireWithin(ctx, 5, 100*time.Millisecond)
					big <- result{p, err}
				}()
				synctest.Wait()
				small := acquired(t.Context(), s, 2)
				counts(t, s, 8, 2)
				leave(s, cancel)
				failed(t, big)
				p := granted(t, small)
				counts(t, s, 10, 0)
				p.Release()
				a.Release()
				counts(t, s, 0, 0)
			})
		})
	}
}

// agronholm/anyio#947, python/cpython#90155: a grant and a cancellation land
// together. No permit is lost, and the waiter that stays is served.
func TestGrantMeetsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		p := must(t, s, 1)
		stays := acquired(t.Context(), s, 1)
		go func() { // holds 10 ms at a time, next to waiters that give up after 10 ms
			for range 2000 {
				time.Sleep(10 * time.Millisecond)
				p.Release()
				p, _ = s.Acquire(context.Background(), 1)
			}
			p.Release()
		}()
		for range 2000 {
			var round sync.WaitGroup
			for range 5 {
				round.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					defer cancel()
					p, _ := s.Acquire(ctx, 1)
					p.Release()
				})
			}
			round.Wait()
			select {
			case r := <-stays:
				r.p.Release()
				stays = nil
			default:
			}
		}
		time.Sleep(time.Minute)
		if stays != nil {
			granted(t, stays).Release()
		}
		counts(t, s, 0, 0)
		must(t, s, 1).Release()
	})
}

// golang/go#63615: who cancels before the release never gets the permit.
func TestDoneContextNeverAcquires(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := semaphore.New(1)
	if _, err := s.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v although a permit is free", err)
	}
	if _, err := s.AcquireWithin(ctx, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v although a permit is free", err)
	}
	counts(t, s, 0, 0)
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		p := must(t, s, 1)
		c := make(chan error)
		go func() {
			_, err := s.Acquire(ctx, 1)
			c <- err
		}()
		for s.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		cancel()
		p.Release()
		if err := <-c; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.InUse != 0 || st.Canceled != 2002 {
		t.Fatalf("%+v", st)
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

// e2b-dev/infra#3629: a cancellation between the look at the context and the
// falling asleep is not lost.
func TestCancelWhileGoingToSleep(t *testing.T) {
	s := semaphore.New(1)
	held := must(t, s, 1)
	hook := &pausedContext{Context: t.Context(), asked: make(chan struct{}), resume: make(chan struct{})}
	var cancel context.CancelFunc
	hook.Context, cancel = context.WithCancel(t.Context())
	c := make(chan error)
	go func() {
		_, err := s.Acquire(hook, 1)
		c <- err
	}()
	<-hook.asked
	cancel()
	close(hook.resume)
	if err := <-c; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i := range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%50)*time.Microsecond)
		if _, err := s.Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	counts(t, s, 1, 0)
	held.Release()
}

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

// pausedContext stops its user after the last look at Err that precedes the
// wait.
type pausedContext struct {
	context.Context
	looks         int
	asked, resume chan struct{}
}

func (c *pausedContext) Err() error {
	err := c.Context.Err()
	if c.looks++; c.looks == 2 {
		close(c.asked)
		<-c.resume
	}
	return err
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

// golang/sync#7: more than the limit never fits, so it does not wait; nor does
// it when the limit falls below what it waits for.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(5)
		for n, want := range map[int64]error{
			6: semaphore.ErrTooLarge, semaphore.MaxLimit: semaphore.ErrTooLarge, math.MaxInt64: semaphore.ErrTooLarge,
			0: semaphore.ErrWeight, -1: semaphore.ErrWeight, math.MinInt64: semaphore.ErrWeight,
		} {
			if _, err := s.Acquire(t.Context(), n); !errors.Is(err, want) {
				t.Errorf("Acquire(%d): %v", n, err)
			}
			if _, err := s.AcquireWithin(t.Context(), n, time.Second); !errors.Is(err, want) {
				t.Errorf("AcquireWithin(%d): %v", n, err)
			}
			if _, ok := s.TryAcquire(n); ok {
				t.Errorf("TryAcquire(%d)", n)
			}
			counts(t, s, 0, 0)
		}

		p := must(t, s, 3)
		q := must(t, s, 2)
		one := acquired(t.Context(), s, 1)
		four := acquired(t.Context(), s, 4)
		behind := acquired(t.Context(), s, 1)
		s.Resize(3)
		err := failed(t, four)
		var r *semaphore.Refusal
		if !errors.As(err, &r) || r.Reason != semaphore.ErrTooLarge || r.Limit != 3 || r.Weight != 4 || r.InUse != 5 {
			t.Fatalf("%#v", err)
		}
		inLine(t, one, behind)
		p.Release()
		granted(t, one).Release()
		granted(t, behind).Release()
		q.Release()
		counts(t, s, 0, 0)
	})
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

// agronholm/anyio#1223: after a shrink, a part of it taken back grants only
// what there is room for.
func TestRaiseWhileOverSubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(4)
		var held []semaphore.Permit
		for range 4 {
			held = append(held, must(t, s, 1))
		}
		a, b, c := acquired(t.Context(), s, 1), acquired(t.Context(), s, 1), acquired(t.Context(), s, 1)
		s.Resize(1)
		s.Resize(3)
		inLine(t, a, b, c)
		counts(t, s, 4, 3)
		held[0].Release()
		inLine(t, a, b, c)
		counts(t, s, 3, 3)
		held[1].Release()
		p := granted(t, a)
		inLine(t, b, c)
		counts(t, s, 3, 2)
		p.Release()
		held[2].Release()
		held[3].Release()
		granted(t, b).Release()
		granted(t, c).Release()
		counts(t, s, 0, 0)
	})
}

// agronholm/anyio#646, golang/go#29721: raising the limit serves the line.
func TestRaiseWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		must(t, s, 1)
		a, b := acquired(t.Context(), s, 1), acquired(t.Context(), s, 1)
		s.Resize(3)
		granted(t, a)
		granted(t, b)
		counts(t, s, 3, 0)
	})
}

// Lowering never blocks and takes nothing away; a waiter that no longer fits
// does not block those behind it.
func TestShrinkBelowInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(10)
		p := must(t, s, 8)
		five, one := acquired(t.Context(), s, 5), acquired(t.Context(), s, 1)
		s.Resize(3)
		if err := failed(t, five); !errors.Is(err, semaphore.ErrTooLarge) {
			t.Fatal(err)
		}
		counts(t, s, 8, 1)
		if _, ok := s.TryAcquire(1); ok {
			t.Fatal("granted above the limit")
		}
		p.Release()
		granted(t, one).Release()
		counts(t, s, 0, 0)
	})
}

// A permit that is parked when the limit falls is not one more.
func TestShrinkWithFreePermit(t *testing.T) {
	s := semaphore.New(2)
	a := must(t, s, 1)
	b := must(t, s, 1)
	a.Release()
	s.Resize(1)
	if _, ok := s.TryAcquire(1); ok {
		t.Fatal("granted above the limit")
	}
	b.Release()
	must(t, s, 1).Release()
	s.Resize(0)
	if _, err := s.Acquire(t.Context(), 1); !errors.Is(err, semaphore.ErrTooLarge) {
		t.Fatal(err)
	}
	s.Resize(-3)
	if st := s.Stats(); st.Limit != 0 || st.InUse != 0 {
		t.Fatalf("%+v", st)
	}
	s.Resize(math.MaxInt64)
	p := must(t, s, semaphore.MaxLimit)
	p.Release()
	counts(t, s, 0, 0)
}

// sindresorhus/p-limit#91, jwiegley/async-pool#4: nested use never hangs
// without a trace when the wait is bounded; the error says how things stand.
func TestNestedAcquireWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(2)
		errs := make(chan error, 2)
		start := time.Now()
		for range 2 {
			go func() {
				p, _ := s.Acquire(t.Context(), 1)
				defer p.Release()
				time.Sleep(time.Millisecond)
				_, err := s.AcquireWithin(t.Context(), 1, 200*time.Millisecond)
				time.Sleep(time.Millisecond) // the other one must time out too
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if got := time.Since(start); got != 202*time.Millisecond {
			t.Errorf("after %v", got)
		}
		for _, err := range []error{first, second} {
			if !errors.Is(err, semaphore.ErrWaitTimeout) || errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "limit 2, in use 2, waiting") {
				t.Errorf("%v", err)
			}
		}
		if !strings.Contains(first.Error()+second.Error(), "waiting 2") {
			t.Errorf("%v; %v", first, second)
		}
		synctest.Wait()
		if st := s.Stats(); st.InUse != 0 || st.Waiting != 0 || st.Timeouts != 2 {
			t.Errorf("%+v", st)
		}
	})
}

func TestAcquireWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		p, err := s.AcquireWithin(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for _, wait := range []time.Duration{0, -1, time.Second} {
			if _, err := s.AcquireWithin(t.Context(), 1, wait); !errors.Is(err, semaphore.ErrWaitTimeout) {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("waited %v", d)
		}
		// The deadline of the caller stays what it is.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.AcquireWithin(ctx, 1, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			p.Release()
		}()
		if p, err = s.AcquireWithin(t.Context(), 1, time.Minute); err != nil {
			t.Fatal(err)
		}
		p.Release()
		if st := s.Stats(); st.InUse != 0 || st.Timeouts != 3 || st.Canceled != 1 {
			t.Errorf("%+v", st)
		}
	})
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

// A semaphore made outside serves two bubbles one after the other: it keeps no
// channel and no timer between waits.
func TestTwoBubbles(t *testing.T) {
	s := semaphore.New(1)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			p := must(t, s, 1)
			c := acquired(t.Context(), s, 1)
			if _, err := s.AcquireWithin(t.Context(), 1, time.Second); !errors.Is(err, semaphore.ErrWaitTimeout) {
				t.Fatal(err)
			}
			p.Release()
			granted(t, c).Release()
		})
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
