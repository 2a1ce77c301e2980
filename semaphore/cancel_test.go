package semaphore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/semaphore"
)

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

// A semaphore made outside serves two bubbles one after the other, and callers
// outside in between: it keeps no channel and no timer between waits, and the
// waiters that it keeps belong to no bubble.
func TestTwoBubbles(t *testing.T) {
	s := semaphore.New(1)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			p := must(t, s, 1)
			c := acquired(t.Context(), s, 1)
			stays := acquired(context.Background(), s, 1)
			if _, err := s.AcquireWithin(t.Context(), 1, time.Second); !errors.Is(err, semaphore.ErrWaitTimeout) {
				t.Fatal(err)
			}
			p.Release()
			granted(t, c).Release()
			granted(t, stays).Release()
		})
		p := must(t, s, 1)
		var outside sync.WaitGroup
		for range 3 {
			outside.Go(func() {
				p, err := s.Acquire(context.Background(), 1)
				if err != nil {
					t.Error(err)
				}
				p.Release()
			})
		}
		for s.Stats().Waiting < 3 {
			runtime.Gosched()
		}
		p.Release()
		outside.Wait()
	}
	counts(t, s, 0, 0)
}

// Callers who cannot give up wait without an allocation, once their waiters
// were made.
func TestStayingAllocatesNothing(t *testing.T) {
	s := semaphore.New(1)
	p := must(t, s, 1)
	var other sync.WaitGroup
	other.Go(func() {
		for {
			p, err := s.Acquire(context.Background(), 1)
			if err != nil {
				return // refused by the limit at the end
			}
			p.Release()
		}
	})
	waits := testing.AllocsPerRun(1000, func() {
		for s.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		p.Release() // to the other one, as long as it does not come back
		p, _ = s.Acquire(context.Background(), 1)
	})
	if waits != 0 {
		t.Errorf("%v allocations", waits)
	}
	s.Resize(0)
	p.Release()
	other.Wait()
}
