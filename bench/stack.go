package main

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"
	xsync "golang.org/x/sync/semaphore"
	xrate "golang.org/x/time/rate"

	"github.com/metehq/mete"
	"github.com/metehq/mete/breaker"
)

// A call through the whole stack: 4 attempts, a breaker that opens at half of
// the calls failed, a rate that is never used up, and 100 calls in flight.

const attempts, permits = 4, 100

func gate(timeout time.Duration, limit mete.Limit) *mete.Gate {
	return value(mete.New(mete.Config{
		Name:        "bench",
		Concurrency: permits,
		Limits:      []mete.Limit{limit},
		Retry:       mete.Retry{Attempts: attempts},
		Breaker:     breaker.Config{Failures: 0.5, Window: 10 * time.Second, Calls: 100},
		Timeout:     timeout,
	}))
}

var (
	aBucket = mete.Bucket(plenty, time.Second, plenty)
	aWindow = mete.Limit{N: plenty, Per: time.Second, Burst: plenty}
)

// meteStack is a no-op through a gate. It must not be inlined away.
func meteStack(g *mete.Gate) func(ctx context.Context) error {
	return func(ctx context.Context) error { return mete.Do(ctx, g, mete.Call{}, succeed) }
}

func succeed(context.Context) error { return nil }

// failsafeStack composes the policies in the order in which its documentation
// does, the retry outermost. The executor and its context are made once, which
// spares it a copy for each call that a program with a context per call makes.
func failsafeStack(timed bool) func(ctx context.Context) error {
	policies := []failsafe.Policy[any]{
		retrypolicy.NewBuilder[any]().WithMaxAttempts(attempts).WithBackoff(500*time.Millisecond, 30*time.Second).Build(),
		circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 100, 10*time.Second).WithDelay(5 * time.Second).Build(),
		ratelimiter.NewBurstyBuilder[any](plenty, time.Second).WithMaxWaitTime(time.Minute).Build(),
		bulkhead.NewBuilder[any](permits).WithMaxWaitTime(time.Minute).Build(),
	}
	if timed {
		policies = append(policies, timeout.New[any](time.Minute))
	}
	executor := failsafe.With(policies...).WithContext(context.Background())
	return func(context.Context) error {
		return executor.RunWithExecution(func(exec failsafe.Execution[any]) error { return succeed(exec.Context()) })
	}
}

// handStack is what a careful programmer writes with the usual parts: the rate
// inside the semaphore, as everywhere recommended, and a loop around them.
func handStack(timed bool) func(ctx context.Context) error {
	inFlight := xsync.NewWeighted(permits)
	limit := xrate.NewLimiter(plenty, plenty)
	circuit := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: 10 * time.Second,
		Timeout:  5 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 100 && 2*c.TotalFailures >= c.Requests
		},
	})
	once := func(ctx context.Context) (err error) {
		if err := inFlight.Acquire(ctx, 1); err != nil {
			return err
		}
		defer inFlight.Release(1)
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		if timed {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Minute)
			defer cancel()
		}
		_, err = circuit.Execute(func() (struct{}, error) { return struct{}{}, succeed(ctx) })
		return err
	}
	return func(ctx context.Context) error {
		var errs error
		for n := range attempts {
			err := once(ctx)
			if err == nil {
				return nil
			}
			errs = errors.Join(errs, err)
			time.Sleep(500 * time.Millisecond << n)
		}
		return errs
	}
}

func calls(call func(ctx context.Context) error) func() float64 {
	return alone(1<<18, func(n int) {
		ctx := context.Background()
		for range n {
			if err := call(ctx); err != nil {
				panic(err)
			}
		}
	})
}

func stacks() []comparison {
	const slow = "Of 135 ns of the processor one reading of the clock is 26 (an exact limit needs the time of the start), the context that fn gets, one allocation of 32 bytes, 28, and the lock, twice, 28; all that decides, books and repeats is 53. The first three alone are 82. They buy exact limits, one decision for permit and limits, first in first out, and a nested use that is an error and no deadlock."
	line := func(name string, g *mete.Gate, peer contender, bound float64) comparison {
		return comparison{
			name: "stack: " + name, unit: "ns",
			mete: contender{"mete", calls(meteStack(g))}, peers: []contender{peer},
			target: target{kind: atMostOf, bound: bound},
			why:    slow,
		}
	}
	return []comparison{
		line("retry, breaker, rate, semaphore", gate(0, aBucket), contender{"failsafe", calls(failsafeStack(false))}, 1./15),
		line("the same, written by hand", gate(0, aBucket), contender{"x/sync+x/time+gobreaker", calls(handStack(false))}, 0.5),
		line("with an attempt timeout", gate(time.Minute, aBucket), contender{"failsafe", calls(failsafeStack(true))}, 0.1),
		line("with an attempt timeout, by hand", gate(time.Minute, aBucket), contender{"x/sync+x/time+gobreaker", calls(handStack(true))}, 0.25),
		// No peer has an exact sliding window; its token bucket is told beside.
		line("with an exact window, by hand with a bucket", gate(0, aWindow), contender{"x/sync+x/time+gobreaker", calls(handStack(false))}, 0.5),
	}
}
