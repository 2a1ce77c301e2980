package mete_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
)

// What one provider cannot give, another one may: with one budget of attempts
// for both.
func ExampleFallback() {
	primary, err := mete.New(mete.Config{Name: "primary", Retry: mete.Retry{Attempts: 2, Delay: time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spare, err := mete.New(mete.Config{Name: "spare"})
	if err != nil {
		fmt.Println(err)
		return
	}
	place, err := mete.Fallback(context.Background(), 3,
		mete.Choice[string]{Gate: primary, Do: func(context.Context) (string, error) { return "", errors.New("down") }},
		mete.Choice[string]{Gate: spare, Do: func(context.Context) (string, error) { return "Reykjavík", nil }},
	)
	fmt.Println(place, err)
	// Output: Reykjavík <nil>
}

// Calls that ask for the same thing at the same time share one result.
func ExampleMerge() {
	var lookups mete.Merge[string, string]
	v, shared, err := lookups.Do(context.Background(), "Reykjavík", func(context.Context) (string, error) {
		return "64.1, -21.9", nil
	})
	fmt.Println(v, shared, err)
	// Output: 64.1, -21.9 false <nil>
}

// A call that is slow is started once more beside itself, and the first result
// counts.
func ExampleHedged() {
	g, err := mete.New(mete.Config{Name: "search", Concurrency: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	var calls atomic.Int32
	answer, err := mete.Hedged(context.Background(), g, mete.Call{}, mete.Hedge{After: 10 * time.Millisecond},
		func(ctx context.Context) (string, error) {
			if calls.Add(1) == 1 { // the first one hangs
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "found", nil
		})
	fmt.Println(answer, err, "by call", calls.Load())
	// Output: found <nil> by call 2
}
