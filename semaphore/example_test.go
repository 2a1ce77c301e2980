package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/semaphore"
)

// Fifty calls, never more than five in flight.
func Example() {
	s := semaphore.New(5)
	var inFlight, peak atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			p, err := s.Acquire(context.Background(), 1)
			if err != nil {
				return
			}
			defer p.Release()

			now := inFlight.Add(1)
			for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
			}
			time.Sleep(time.Millisecond) // the call
			inFlight.Add(-1)
		})
	}
	all.Wait()
	fmt.Println("peak", peak.Load())
	// Output: peak 5
}

// A call that cannot start soon is better refused than late.
func ExampleSemaphore_AcquireWithin() {
	s := semaphore.New(1)
	held, _ := s.TryAcquire(1)
	defer held.Release()

	p, err := s.AcquireWithin(context.Background(), 1, 10*time.Millisecond)
	defer p.Release() // does nothing: it was refused
	fmt.Println(errors.Is(err, semaphore.ErrWaitTimeout))
	fmt.Println(err)
	// Output:
	// true
	// semaphore: no permit in time: asked for 1 (limit 1, in use 1, waiting 1)
}

// An operator lowers the limit during an incident. Work in flight goes on.
func ExampleSemaphore_Resize() {
	s := semaphore.New(4)
	held, _ := s.TryAcquire(3)
	s.Resize(2)
	_, ok := s.TryAcquire(1)
	fmt.Println(ok, s.Stats().InUse, "of", s.Stats().Limit)
	held.Release()
	_, ok = s.TryAcquire(1)
	fmt.Println(ok, s.Stats().InUse, "of", s.Stats().Limit)
	// Output:
	// false 3 of 2
	// true 1 of 2
}
