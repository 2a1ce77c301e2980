package mete_test

import (
	"fmt"
	"os"

	"github.com/metehq/mete"
)

// With a State folder a restart does not start a quota afresh.
func ExampleConfig_state() {
	dir, err := os.MkdirTemp("", "mete")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := mete.Config{
		Name:   "maps",
		Limits: []mete.Limit{{N: 1000, Calendar: "month"}},
		State:  dir,
	}
	for run := range 3 {
		g, err := mete.New(cfg)
		if err != nil {
			fmt.Println(err)
			return
		}
		for range 100 {
			if p, ok := g.TryAcquire(mete.Call{}); ok {
				p.Release()
			}
		}
		fmt.Println("run", run+1, "leaves", g.Stats().Limits[0].Free)
		if err := g.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// run 1 leaves 900
	// run 2 leaves 800
	// run 3 leaves 700
}
