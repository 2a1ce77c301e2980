package mete_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/adaptive"
)

// Where nobody knows how many calls a provider bears at once, Adaptive finds
// the number while calls are made. Here 100 callers call a provider that works
// on as many as come, until the number has grown.
func ExampleConfig_adaptive() {
	g, err := mete.New(mete.Config{
		Name:     "search",
		Adaptive: &adaptive.Config{Initial: 4, Max: 64},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_ = mete.Do(ctx, g, mete.Call{Patient: true}, func(context.Context) error {
					time.Sleep(5 * time.Millisecond)
					return nil
				})
				if g.Stats().Concurrency > 16 {
					cancel()
				}
			}
		})
	}
	callers.Wait()
	found := g.Stats()
	fmt.Println("from 4 to more than 16:", found.Concurrency > 16)
	fmt.Println("at most Max:", found.Concurrency <= 64)
	fmt.Println("in use at the end:", found.InUse)
	// Output:
	// from 4 to more than 16: true
	// at most Max: true
	// in use at the end: 0
}
