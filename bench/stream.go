package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/alitto/pond/v2"
	"github.com/sourcegraph/conc/pool"

	"github.com/metehq/mete/batch"
)

// workers is how many items are worked on at once.
const workers = 20

// streams is the cost of an item that does nothing. mete gives every item's
// result to a loop; the pools only run functions.
func streams(quick bool) []comparison {
	items := 1_000_000
	if quick {
		items = 100_000
	}
	ctx := context.Background()
	ours := contender{"mete", each(items, func(n int) {
		in := func(yield func(int) bool) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		}
		got := 0
		noop := func(context.Context, int) (struct{}, error) { return struct{}{}, nil }
		for r := range batch.Map(ctx, nil, in, noop, batch.Workers(workers)) {
			must(r.Err)
			got++
		}
		if got != n {
			panic("a result was lost")
		}
	})}
	// Pond's default queue has no bound; it is the faster of its two.
	ponds := contender{"pond", each(items, func(n int) {
		p := pond.NewPool(workers)
		for range n {
			must(p.Go(nothing))
		}
		p.StopAndWait()
	})}
	concs := contender{"conc", each(items, func(n int) {
		p := pool.New().WithMaxGoroutines(workers)
		for range n {
			p.Go(nothing)
		}
		p.Wait()
	})}
	return []comparison{
		{
			name: "batch.Map: 20 workers, a no-op item", unit: "ns",
			mete: ours, peers: []contender{ponds}, target: target{kind: atMostOf, bound: 0.6},
		},
		{
			name: "batch.Map: the same, beside conc/pool", unit: "ns",
			mete: ours, peers: []contender{concs}, target: target{kind: atMostOf, bound: 0.3},
			why: "It waits less when others take the processors than a pool that hands every item over.",
		},
	}
}

// residents is the most memory that a process takes for a stream. It is a
// process of its own, so that nothing of the others counts.
func residents(quick bool) []comparison {
	items, blocking := 1_000_000, 50_000
	if quick {
		items, blocking = 100_000, 5_000
	}
	peak := func(args ...string) contender {
		return contender{"mete", func() float64 { return flat(args...) }}
	}
	told := fmt.Sprint
	return []comparison{
		{
			name: "batch.Map: peak RSS of " + told(items) + " no-op items", unit: "MiB",
			mete: peak("-n", told(items)), target: target{kind: atMost, bound: 8}, rounds: 3,
			why: "About 4 MiB are the pages of the program itself.",
		},
		{
			name: "batch.Map: peak RSS of " + told(blocking) + " items of 1 ms", unit: "MiB",
			mete: peak("-n", told(blocking), "-takes", "1ms"), target: target{kind: atMost, bound: 8}, rounds: 3,
			why: "About 4 MiB are the pages of the program itself.",
		},
	}
}

// flat runs batch/internal/flat and reads the last peak that it prints.
func flat(args ...string) float64 {
	folder := value(os.MkdirTemp("", "mete-bench"))
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "flat")
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Stderr = os.Stderr
		return string(value(cmd.Output()))
	}
	run("go", "build", "-o", program, "github.com/metehq/mete/batch/internal/flat")
	out := run(program, append(args, "-workers", fmt.Sprint(workers))...)
	_, text, ok := strings.Cut(out[max(strings.LastIndex(out, "peak RSS"), 0):], "peak RSS ")
	var mib float64
	if _, err := fmt.Sscanf(text, "%f MiB", &mib); !ok || err != nil {
		panic("batch/internal/flat printed no peak RSS: " + out)
	}
	return mib
}
