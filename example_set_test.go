package mete_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// A set keeps one gate per key, here per tenant.
func ExampleSet() {
	tenants, err := mete.NewSet(mete.SetConfig{
		Gate: mete.Config{Limits: []mete.Limit{{N: 2, Per: time.Minute, Burst: 2}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tenants.Close()
	for _, tenant := range []string{"blue", "blue", "blue", "green"} {
		g, err := tenants.Gate(tenant)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, ok := g.TryAcquire(mete.Call{})
		fmt.Println(tenant, ok)
	}
	// Output:
	// blue true
	// blue true
	// blue false
	// green true
}
