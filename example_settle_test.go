package mete_test

import (
	"context"
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// Of a call whose cost is known only afterwards an estimate is taken, and
// settled with the true cost.
func ExamplePermit_Settle() {
	llm, err := mete.New(mete.Config{
		Name:   "llm",
		Limits: []mete.Limit{{Name: "tpd", Unit: "tokens", N: 1000, Per: 24 * time.Hour, Burst: 1000, Bucket: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	permit, err := llm.Acquire(context.Background(), mete.Call{Costs: map[string]int64{"tokens": 400}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("estimated:", llm.Stats().Limits[0].Free, "left")
	permit.Settle(map[string]int64{"tokens": 100})
	permit.Release()
	fmt.Println("settled:", llm.Stats().Limits[0].Free, "left")
	// Output:
	// estimated: 600 left
	// settled: 900 left
}
