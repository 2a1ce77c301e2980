package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
	"github.com/metehq/mete/rate"
	"github.com/metehq/mete/semaphore"
)

const ms = time.Millisecond

// timed are the cases that a clock decides.
var timed = []struct {
	name, published string
	ideal           time.Duration
	peak            int64 // most that may be in flight at once, per host; 0 is not measured
	run             func(*gauge) error
}{
	{"50 calls of 50 ms, 5 in flight", "0.53 s, peak 5", 500 * ms, 5, func(g *gauge) error {
		return stream(g, mete.Config{Concurrency: 5}, 50, 50*ms)
	}},
	{"6 jobs of 0.1 s, 2 slots", "0.3 s", 300 * ms, 2, slots},
	{"9 blocking calls of 0.1 s, 3 slots", "0.3 s", 300 * ms, 3, func(g *gauge) error {
		return stream(g, mete.Config{Concurrency: 3}, 9, 100*ms)
	}},
	{"20 starts, bucket of 5 at 5/s", "3.0 s", 3000 * ms, 0, bucket},
	{"2 hosts x 10 calls of 0.1 s, 2 in flight each", "peak 4", 500 * ms, 4, hosts},
	{"20 jobs fail once, 4 slots: slot kept", "3.52 s", 3500 * ms, 4, func(g *gauge) error {
		return failOnce(g, true)
	}},
	{"the same, slot released during back-off", "1.11 s", 1100 * ms, 4, func(g *gauge) error {
		return failOnce(g, false)
	}},
}

// gauge counts what is in flight.
type gauge struct{ now, peak atomic.Int64 }

// call is a call that blocks for d.
func (g *gauge) call(d time.Duration) {
	n := g.now.Add(1)
	for {
		p := g.peak.Load()
		if n <= p || g.peak.CompareAndSwap(p, n) {
			break
		}
	}
	time.Sleep(d)
	g.now.Add(-1)
}

// measure is median, repeated up to twice while it is too slow: what else runs
// on the machine does not delay every series, a slow limiter does.
func measure(n int, ideal time.Duration, f func(*gauge) error) (took time.Duration, peak int64, _ error) {
	for range 3 {
		t, p, err := median(n, f)
		if err != nil {
			return 0, 0, err
		}
		peak = max(peak, p)
		if took == 0 || t < took {
			took = t
		}
		if ideal.Seconds()/took.Seconds() >= least {
			break
		}
	}
	return took, peak, nil
}

// median runs f n times and returns the median of the times it took, and the
// highest peak of all.
func median(n int, f func(*gauge) error) (time.Duration, int64, error) {
	var times []time.Duration
	var g gauge
	for range max(n, 1) {
		begun := time.Now()
		if err := f(&g); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(begun))
	}
	slices.SortFunc(times, cmp.Compare)
	return times[len(times)/2], g.peak.Load(), nil
}

// ints are the numbers below n, as a sequence.
func ints(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// stream sends n calls through batch.Map and a gate.
func stream(g *gauge, cfg mete.Config, n int, takes time.Duration) error {
	gate, err := mete.New(cfg)
	if err != nil {
		return err
	}
	defer gate.Close()
	for r := range batch.Map(context.Background(), gate, ints(n), func(context.Context, int) (struct{}, error) {
		g.call(takes)
		return struct{}{}, nil
	}) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// each runs f n times at once, and joins the errors.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func slots(g *gauge) error {
	s := semaphore.New(2)
	return each(6, func(int) error {
		return s.Do(context.Background(), 1, func() error { g.call(100 * ms); return nil })
	})
}

func bucket(*gauge) error {
	l, err := rate.New(rate.Bucket{N: 5, Per: time.Second, Burst: 5})
	if err != nil {
		return err
	}
	return each(20, func(int) error { return l.Wait(context.Background(), 1) })
}

// hosts sends to two hosts through a set, which has a gate for each.
func hosts(g *gauge) error {
	set, err := mete.NewSet(mete.SetConfig{Gate: mete.Config{Concurrency: 2}})
	if err != nil {
		return err
	}
	defer set.Close()
	return each(20, func(i int) error {
		gate, err := set.Gate([]string{"a.example", "b.example"}[i%2])
		if err != nil {
			return err
		}
		return mete.Do(context.Background(), gate, mete.Call{}, func(context.Context) error {
			g.call(100 * ms)
			return nil
		})
	})
}

// failOnce runs 20 jobs on 4 slots, each of which fails once: 0.1 s, a back-off
// of 0.5 s with or without its slot, 0.1 s.
func failOnce(g *gauge, keep bool) error {
	retry := mete.Retry{Attempts: 2, Delay: 500 * ms, KeepPermit: keep}
	gate, err := mete.New(mete.Config{Concurrency: 4, Retry: retry})
	if err != nil {
		return err
	}
	defer gate.Close()
	return each(20, func(int) error {
		tried := false
		return mete.Do(context.Background(), gate, mete.Call{}, func(context.Context) error {
			g.call(100 * ms)
			if !tried {
				tried = true
				return errors.New("the first attempt fails")
			}
			return nil
		})
	})
}
