package mete_test

import (
	"fmt"

	"github.com/metehq/mete"
)

// The reserve of a lane is there for it however busy the others are.
func ExampleLane() {
	g, err := mete.New(mete.Config{
		Name:        "search",
		Concurrency: 4,
		Lanes: []mete.Lane{
			{Name: "interactive", Weight: 8, Reserve: 0.25},
			{Name: "bulk", Weight: 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for ok := true; ok; {
		if _, ok = g.TryAcquire(mete.Call{Lane: "bulk"}); ok {
			n++
		}
	}
	_, ok := g.TryAcquire(mete.Call{Lane: "interactive"})
	fmt.Println("bulk got", n, "of 4, interactive is admitted:", ok)
	// Output:
	// bulk got 3 of 4, interactive is admitted: true
}
