// Flat runs a long stream and prints its cost per item and the most memory that
// the process ever had. It fails if that is above a bound.
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
	flag.Parse()

	in := func(yield func(int) bool) {
		for i := range *n {
			if !yield(i) {
				return
			}
		}
	}
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
	results := 0
	begun := time.Now()
	for range batch.Map(context.Background(), nil, in, call, opts...) {
		results++
	}
	took := time.Since(begun)
	peak, err := peakRSS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flat:", err)
		os.Exit(1)
	}
	fmt.Printf("items %d  workers %d  %.1f ns/item  peak RSS %.1f MiB\n",
		results, *workers, float64(took.Nanoseconds())/float64(max(*n, 1)), peak)
	if results != *n {
		fmt.Fprintf(os.Stderr, "flat: %d results of %d items\n", results, *n)
		os.Exit(1)
	}
	if peak > *bound {
		fmt.Fprintf(os.Stderr, "flat: peak RSS %.1f MiB is above %.1f MiB\n", peak, *bound)
		os.Exit(1)
	}
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
