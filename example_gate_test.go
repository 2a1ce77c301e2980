package mete_test

import (
	"context"
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// A gate admits a call once a permit is free and every limit allows it.
func ExampleGate() {
	geo, err := mete.New(mete.Config{
		Name:        "geocoder",
		Concurrency: 2,
		Limits:      []mete.Limit{mete.Per(50, time.Second)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	permit, err := geo.Acquire(context.Background(), mete.Call{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("in use:", geo.Stats().InUse)
	permit.Release()
	fmt.Println("in use:", geo.Stats().InUse)
	// Output:
	// in use: 1
	// in use: 0
}
