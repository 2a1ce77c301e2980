package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	xsync "golang.org/x/sync/semaphore"

	"github.com/metehq/mete/semaphore"
)

// inFlight is a limit of calls in flight: it calls do while it holds a permit.
type inFlight interface {
	do(ctx context.Context, f func())
}

type meteSemaphore struct{ *semaphore.Semaphore }

func (s meteSemaphore) do(ctx context.Context, f func()) {
	p, err := s.Acquire(ctx, 1)
	must(err)
	f()
	p.Release()
}

type syncSemaphore struct{ *xsync.Weighted }

func (s syncSemaphore) do(ctx context.Context, f func()) {
	must(s.Acquire(ctx, 1))
	f()
	s.Release(1)
}

// channel is a buffered channel as a semaphore, which cannot be cancelled.
type channel chan struct{}

func (c channel) do(_ context.Context, f func()) {
	c <- struct{}{}
	f()
	<-c
}

// selected is a buffered channel as a semaphore that looks at the context.
type selected chan struct{}

func (c selected) do(ctx context.Context, f func()) {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
		panic(ctx.Err())
	}
	f()
	<-c
}

func semaphores() []comparison {
	cancelable, cancel := context.WithCancel(context.Background())
	_ = cancel // the context has to live as long as the program
	list := []comparison{
		uncontended("semaphore: acquire + release, background", context.Background()),
		uncontended("semaphore: acquire + release, cancellable", cancelable),
	}
	// The section is empty, so this is the price of the hand-over alone.
	crowd := func(s inFlight) func() float64 {
		return each(1<<19, spread(128, func(n int) {
			for range n {
				s.do(context.Background(), nothing)
			}
		}))
	}
	list = append(list, comparison{
		name: "semaphore: 4 permits, 128 goroutines, empty section", unit: "ns",
		mete: contender{"mete", crowd(meteSemaphore{semaphore.New(4)})},
		peers: []contender{
			{"channel", crowd(make(channel, 4))},
			{"channel with select", crowd(make(selected, 4))},
			{"x/sync", crowd(syncSemaphore{xsync.NewWeighted(4)})},
		},
		target: target{kind: atMostOf, bound: 0.8},
		why:    "Not traced. The two differ in the order: at mete nobody passes the line, and of a channel whoever runs takes what is free.",
	})
	return append(list, oneByOne()...)
}

func nothing() {}

func uncontended(name string, ctx context.Context) comparison {
	const ops = 1 << 21
	ours, theirs := semaphore.New(10), xsync.NewWeighted(10)
	full := bulkhead.New[any](10)
	c := make(selected, 10)
	return comparison{
		name: name, unit: "ns",
		mete: contender{"mete", alone(ops, func(n int) {
			for range n {
				p, err := ours.Acquire(ctx, 1)
				if err != nil {
					panic(err)
				}
				p.Release()
			}
		})},
		peers: []contender{
			{"x/sync", alone(ops, func(n int) {
				for range n {
					if err := theirs.Acquire(ctx, 1); err != nil {
						panic(err)
					}
					theirs.Release(1)
				}
			})},
			{"channel with select", alone(ops, func(n int) {
				for range n {
					select {
					case c <- struct{}{}:
					case <-ctx.Done():
					}
					<-c
				}
			})},
			{"failsafe bulkhead", alone(ops, func(n int) {
				for range n {
					if err := full.AcquirePermit(ctx); err != nil {
						panic(err)
					}
					full.ReleasePermit()
				}
			})},
		},
		target: target{kind: atMostOf, bound: 0.65},
	}
}

// oneByOne is 64 goroutines that share one permit and hold it for 1 us of work:
// how many turns there are, and how evenly they are shared. All of them are in
// line before the first turn: else whoever starts first has the permit alone
// for thousands of turns, until the scheduler starts another one.
func oneByOne() []comparison {
	const goroutines, hold = 64, time.Microsecond
	turns := func(s inFlight, figure func(elapsed time.Duration, counts []float64) float64) func() float64 {
		return func() float64 {
			counts := make([]float64, goroutines)
			var stop atomic.Bool
			var wg sync.WaitGroup
			held, start := make(chan struct{}), make(chan struct{})
			wg.Go(func() {
				s.do(context.Background(), func() {
					close(held)
					<-start
				})
			})
			<-held
			for i := range counts {
				wg.Go(func() {
					for !stop.Load() {
						s.do(context.Background(), func() { spin(hold) })
						counts[i]++
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			close(start)
			begun := time.Now()
			time.Sleep(300 * time.Millisecond)
			stop.Store(true)
			elapsed := time.Since(begun)
			wg.Wait()
			return figure(elapsed, counts)
		}
	}
	throughput := func(elapsed time.Duration, counts []float64) float64 {
		sum := 0.0
		for _, n := range counts {
			sum += n
		}
		return sum / elapsed.Seconds()
	}
	// Jain's index: 1 if all have the same, 1/n if one has everything (Jain,
	// Chiu, Hawe: A quantitative measure of fairness, 1984).
	jain := func(_ time.Duration, counts []float64) float64 {
		sum, squares := 0.0, 0.0
		for _, n := range counts {
			sum += n
			squares += n * n
		}
		return sum * sum / (squares * float64(len(counts)))
	}
	return []comparison{
		{
			name: "semaphore: 1 permit, 64 goroutines, 1 us held: throughput", unit: "/s",
			mete:   contender{"mete", turns(meteSemaphore{semaphore.New(1)}, throughput)},
			peers:  []contender{{"x/sync", turns(syncSemaphore{xsync.NewWeighted(1)}, throughput)}},
			target: target{kind: atLeastOf, bound: 1.2},
			why:    "A bare channel of capacity 1, which knows neither weights nor contexts, has 1.1-1.2x of the turns of x/sync in this shape, and mete about as many as the channel. Of the median turn of 1.33 us the section is 1.13 and the whole hand-over 0.2, without an allocation. What lifts the mean to 2.5 us is 2% of the turns that take 20 us and more, at all of them alike: to wake a goroutine the Go runtime also wakes the thread of an idle processor (wakep), which finds nothing, naps beside the running one (runqgrab) and sleeps again, on a virtual machine with a trip to the hypervisor each. With that processor kept busy a turn takes 1.47 us, at x/sync 1.70. With a cancellable context, where both allocate 160 bytes, it is 0.95-1.0x.",
		},
		{
			name: "semaphore: 1 permit, 64 goroutines, 1 us held: Jain's index", unit: "",
			mete:   contender{"mete", turns(meteSemaphore{semaphore.New(1)}, jain)},
			peers:  []contender{{"x/sync", turns(syncSemaphore{xsync.NewWeighted(1)}, jain)}},
			target: target{kind: atLeast, bound: 0.98},
			why:    "The line is first in, first out: shares differ if a goroutine is stopped outside the line, which the scheduler does to one that has run for 10 ms together with those that woke each other, and a busy machine to its thread.",
		},
	}
}

func spin(d time.Duration) {
	for begun := time.Now(); time.Since(begun) < d; {
	}
}
