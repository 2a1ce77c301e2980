// Bench measures mete beside its peers, in one run, and says which of the
// targets are met. Run it in the root of the repository, on a machine that does
// nothing else:
//
//	go run ./bench
//
// The samples of a comparison are taken in turn, mete, peer, mete, peer, with
// fixed numbers of operations; medians count. Callers that never wait are
// measured in processor time. It prints a line for each comparison and writes
// bench/RESULTS.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
)

func main() {
	match := flag.String("run", "", "only the comparisons whose name matches this `regexp`; nothing is written")
	rounds := flag.Int("rounds", 9, "samples of each contender")
	quick := flag.Bool("quick", false, "a rough run in under a minute; nothing is written")
	out := flag.String("o", "bench/RESULTS.md", "where the results are written; - is nowhere")
	flag.Parse()
	name, err := regexp.Compile(*match)
	if err != nil || *rounds < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: bench [-run REGEXP] [-rounds N] [-quick] [-o FILE]:", err)
		os.Exit(2)
	}
	if *quick {
		*rounds = min(*rounds, 3)
	}
	runtime.GOMAXPROCS(processors)

	before := load()
	fmt.Println(header)
	var results []result
	missed := 0
	for _, c := range comparisons(*quick) {
		if !name.MatchString(c.name) {
			continue
		}
		r := c.run(*rounds)
		results = append(results, r)
		if !r.ok() {
			missed++
		}
		fmt.Println(r)
	}
	fmt.Printf("%d comparisons, %d targets missed; load %s at the start, %s at the end\n", len(results), missed, before, load())
	if *match != "" || *quick || *out == "-" {
		return
	}
	if err := os.WriteFile(*out, report(results, *rounds, before), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// processors is for how many processors the targets are set.
const processors = 2

func comparisons(quick bool) []comparison {
	return slices.Concat(
		semaphores(), waiters(),
		rates(), []comparison{pacing(quick)},
		stacks(), clients(),
		streams(quick), residents(quick),
		keyed(quick),
	)
}
