package mete_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// All limits are taken together or none is: a call that has to wait for one of
// them leaves the others to nobody and takes nothing of them.
func ExampleConfig_limits() {
	g, err := mete.New(mete.Config{
		Name: "llm",
		Limits: []mete.Limit{
			{Name: "rpm", N: 500, Per: time.Minute, Burst: 500},
			{Name: "tpm", Unit: "tokens", N: 90_000, Per: time.Minute, Burst: 90_000, Bucket: true},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, ok := g.TryAcquire(mete.Call{Costs: map[string]int64{"tokens": 90_000}})
	fmt.Println("all tokens:", ok)
	_, ok = g.TryAcquire(mete.Call{Costs: map[string]int64{"tokens": 60_000}})
	fmt.Println("more tokens:", ok)
	for _, l := range g.Stats().Limits[:1] {
		fmt.Println(l.Bound, "free:", l.Free)
	}
	// Output:
	// all tokens: true
	// more tokens: false
	// limit:rpm free: 499
}
