package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	xsync "golang.org/x/sync/semaphore"

	"github.com/metehq/mete/semaphore"
)

// waiters is about callers in line: what leaving costs, and what waiting does.
func waiters() []comparison {
	return []comparison{
		{
			name: "semaphore: 10,000 queued waiters cancelled, each", unit: "ns",
			mete:   contender{"mete", func() float64 { return meteLine().cancel(10_000) }},
			peers:  []contender{{"x/sync", func() float64 { return syncLine().cancel(10_000) }}},
			target: target{kind: atMostOf, bound: 1.3},
			why:    "Most of it is the end of the goroutine, which is the same for both.",
		},
		{
			// 1 is linear, 10 quadratic; the goroutines of the longer line do
			// not fit the caches.
			name: "semaphore: a cancel among 10,000 over one among 1,000", unit: "",
			mete:   contender{"mete", func() float64 { return growth(meteLine) }},
			peers:  []contender{{"x/sync", func() float64 { return growth(syncLine) }}},
			target: target{kind: atMost, bound: 2},
			why:    "Leaving the line is a few writes whatever its length; what grows is the goroutines' share of cache misses.",
		},
		{
			name: "semaphore: a parked waiter beyond its goroutine", unit: "B",
			mete:   contender{"mete", func() float64 { return meteLine().parked() - asleep().parked() }},
			peers:  []contender{{"x/sync", func() float64 { return syncLine().parked() - asleep().parked() }}},
			target: target{kind: atMost, bound: 400},
			rounds: 5,
			why:    "What the select on the context takes is counted, and the waiter.",
		},
	}
}

// line is a semaphore whose only permit is taken, so that all wait in line.
type line struct {
	wait    func(ctx context.Context) // until ctx ends
	waiting func() int                // how many do; nil if nobody tells
	wake    func()                    // ends waiting that no context ends; may be nil
	end     func()                    // panics if a permit was lost
}

func meteLine() line {
	s := semaphore.New(1)
	p, _ := s.TryAcquire(1)
	return line{
		wait: func(ctx context.Context) {
			if _, err := s.Acquire(ctx, 1); err == nil {
				panic("granted what somebody holds")
			}
		},
		waiting: func() int { return s.Stats().Waiting },
		end: func() {
			p.Release()
			if _, ok := s.TryAcquire(1); !ok {
				panic("a permit was lost")
			}
		},
	}
}

func syncLine() line {
	s := xsync.NewWeighted(1)
	must(s.Acquire(context.Background(), 1))
	return line{
		wait: func(ctx context.Context) {
			if s.Acquire(ctx, 1) == nil {
				panic("granted what somebody holds")
			}
		},
		end: func() {
			s.Release(1)
			if !s.TryAcquire(1) {
				panic("a permit was lost")
			}
		},
	}
}

// asleep is goroutines that receive from one channel: nothing but themselves.
func asleep() line {
	never := make(chan struct{})
	return line{
		wait: func(context.Context) { <-never },
		wake: func() { close(never) },
		end:  func() {},
	}
}

// crowd makes n goroutines that wait, each with a context of its own, and
// returns when all of them do.
func (l line) crowd(n int) (cancel func(), done *sync.WaitGroup) {
	done = &sync.WaitGroup{}
	var arrived sync.WaitGroup
	arrived.Add(n)
	cancels := make([]context.CancelFunc, n)
	for i := range cancels {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(context.Background())
		ctx.Done() // its channel is made when it is first asked for
		done.Go(func() {
			arrived.Done()
			l.wait(ctx)
		})
	}
	arrived.Wait()
	for l.waiting != nil && l.waiting() < n {
		time.Sleep(time.Millisecond) // asking takes the lock that they need
	}
	time.Sleep(20 * time.Millisecond) // for those that nobody counts
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
		if l.wake != nil {
			l.wake()
		}
	}, done
}

// cancel is the nanoseconds from the first cancel to the end of the last
// goroutine, for each of n.
func (l line) cancel(n int) float64 {
	cancel, done := l.crowd(n)
	runtime.GC()
	begun := time.Now()
	cancel()
	done.Wait()
	took := time.Since(begun)
	l.end()
	return float64(took.Nanoseconds()) / float64(n)
}

func growth(make func() line) float64 {
	var short series
	for range 5 {
		short = append(short, make().cancel(1000))
	}
	long := series{make().cancel(10_000), make().cancel(10_000), make().cancel(10_000)}
	return long.median() / short.median()
}

// parked is the bytes of heap that each of many waiters takes, its goroutine
// included. Stacks are left out: the runtime chooses the size of new ones by the
// average of the old.
func (l line) parked() float64 {
	const n = 10_000
	before := memory()
	cancel, done := l.crowd(n)
	each := (memory() - before) / n
	cancel()
	done.Wait()
	l.end()
	return each
}

// memory is the bytes in use on the heap.
func memory() float64 {
	runtime.GC()
	runtime.GC() // the second one frees what the first one has finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
