package rate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/rate"
)

// The provider says "5 per second": no second ever holds more.
func ExampleWindow() {
	limiter, err := rate.New(rate.Window{N: 5, Per: time.Second, Burst: 5})
	if err != nil {
		panic(err)
	}
	for range 7 {
		fmt.Print(limiter.Allow(1), " ")
	}
	// Output: true true true true true false false
}

// The provider documents a token bucket of 10 that refills with 2 per second.
func ExampleBucket() {
	limiter, err := rate.New(rate.Bucket{N: 2, Per: time.Second, Burst: 10})
	if err != nil {
		panic(err)
	}
	fmt.Println(limiter.Allow(10))
	wait, err := limiter.Peek(6)
	fmt.Println(wait.Round(time.Second), err)
	// Output:
	// true
	// 3s <nil>
}

// The provider counts per calendar month, in its own time zone.
func ExampleCalendar() {
	zone := time.FixedZone("provider", -8*60*60)
	limiter, err := rate.New(rate.Calendar{N: 10_000, Each: "month", Zone: zone})
	if err != nil {
		panic(err)
	}
	fmt.Println(limiter.Stats().Limit, "with", limiter.Stats().Free, "left")
	// Output: calendar of 10000 per month with 10000 left
}

// A wait that could not end in time is refused at once.
func ExampleLimiter_Wait() {
	limiter, err := rate.New(rate.Window{N: 1, Per: time.Minute})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(limiter.Wait(ctx, 1))
	err = limiter.Wait(ctx, 1)
	if refusal, ok := errors.AsType[*rate.Refusal](err); ok {
		fmt.Println(errors.Is(err, rate.ErrDeadline), refusal.RetryAfter.Round(time.Minute))
	}
	// Output:
	// <nil>
	// true 1m0s
}

// The cost of a call is known when it has ended: take an estimate, settle it.
func ExampleLimiter_Take() {
	limiter, err := rate.New(rate.Bucket{N: 90_000, Per: time.Minute, Burst: 90_000})
	if err != nil {
		panic(err)
	}
	call := func() (used int64, err error) { return 1200, nil }

	grant, err := limiter.Take(context.Background(), 4000)
	if err != nil {
		panic(err)
	}
	defer grant.Cancel() // gives all of it back if the call does not start
	used, err := call()
	if err != nil {
		panic(err)
	}
	grant.Settle(used)
	fmt.Println(limiter.Stats().Free >= 90_000-1200)
	// Output: true
}

// Each tenant may call 3 times in a burst and once a second from then on.
func ExampleKeyed() {
	limiter, err := rate.NewKeyed(rate.Bucket{N: 1, Per: time.Second, Burst: 3}, 1_000_000)
	if err != nil {
		panic(err)
	}
	for range 3 {
		limiter.Allow("tenant-17", 1)
	}
	ok, retryAfter := limiter.Allow("tenant-17", 1)
	fmt.Println(ok, retryAfter.Round(time.Second))
	ok, _ = limiter.Allow("tenant-18", 1)
	fmt.Println(ok)
	// Output:
	// false 1s
	// true
}
