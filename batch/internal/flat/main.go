// Flat runs a short stream and then a long one, and prints for each its cost per
// item and the most memory that the process had so far. It fails if that is above
// a bound or if the long stream took more of it than the short one.
//
//	go run ./batch/internal/flat -n 10000000
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/metehq/mete/batch"
)

func main() {
	n := flag.Int("n", 10_000_000, "`items`")
	workers := flag.Int("workers", 20, "calls at once")
	takes := flag.Duration("takes", 0, "how long a call takes")
	ordered := flag.Bool("ordered", false, "results in the order of the input")
	size := flag.Int("size", 0, "`bytes` that each result holds")
	bound := flag.Float64("max-mib", 64, "the peak RSS in `MiB` above which to fail")
	growth := flag.Float64("growth-mib", 8, "how much more `MiB` the long stream may take than one of 100000 items")
	flag.Parse()

	call := func(context.Context, int) ([]byte, error) {
		if *takes > 0 {
			time.Sleep(*takes)
		}
		if *size > 0 {
			return make([]byte, *size), nil
		}
		return nil, nil
	}
	opts := []batch.Option{batch.Workers(*workers)}
	if *ordered {
		opts = append(opts, batch.Ordered(0))
	}
	short, err := run(min(*n, 100_000), call, opts)
	if err != nil {
		fail(err)
	}
	long, err := run(*n, call, opts)
	switch {
	case err != nil:
		fail(err)
	case long > *bound:
		fail(fmt.Errorf("peak RSS %.1f MiB is above %.1f MiB", long, *bound))
	case long-short > *growth:
		fail(fmt.Errorf("the long stream took %.1f MiB more than the short one", long-short))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "flat:", err)
	os.Exit(1)
}

// run streams n items and returns the peak RSS in MiB.
func run(n int, call func(context.Context, int) ([]byte, error), opts []batch.Option) (float64, error) {
	in := func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
	results := 0
	begun := time.Now()
	for range batch.Map(context.Background(), nil, in, call, opts...) {
		results++
	}
	took := time.Since(begun)
	if results != n {
		return 0, fmt.Errorf("%d results of %d items", results, n)
	}
	peak, err := peakRSS()
	fmt.Printf("items %d  %.1f ns/item  peak RSS %.1f MiB\n", n, float64(took.Nanoseconds())/float64(max(n, 1)), peak)
	return peak, err
}

// peakRSS is the high-water mark of the resident set in MiB, as Linux keeps it.
func peakRSS() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib float64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, fmt.Errorf("VmHWM in /proc/self/status: %w", err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("no VmHWM in /proc/self/status")
}
