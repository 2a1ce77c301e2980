package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	xsync "golang.org/x/sync/semaphore"

	"github.com/metehq/mete/semaphore"
)

// acquireRelease is what taking and giving back a free permit costs, in
// nanoseconds, here and in golang.org/x/sync. The least of some runs counts:
// what is above it is the machine's.
func acquireRelease() (ours, theirs float64) {
	ctx := context.Background()
	s, x := semaphore.New(10), xsync.NewWeighted(10)
	for range 5 {
		a := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				p, err := s.Acquire(ctx, 1)
				if err != nil {
					b.Fatal(err)
				}
				p.Release()
			}
		})
		b := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if err := x.Acquire(ctx, 1); err != nil {
					b.Fatal(err)
				}
				x.Release(1)
			}
		})
		ours, theirs = less(ours, a), less(theirs, b)
	}
	return ours, theirs
}

func less(least float64, r testing.BenchmarkResult) float64 {
	ns := float64(r.T.Nanoseconds()) / float64(max(r.N, 1))
	if least == 0 || ns < least {
		return ns
	}
	return least
}

// memory streams 50,000 and then items calls through batch.Map, each in a
// process of its own, and returns the peak of their resident sets in MiB.
func memory(items int) (short, long float64, err error) {
	if short, err = flat(50_000); err != nil {
		return 0, 0, err
	}
	long, err = flat(items)
	return short, long, err
}

func flat(items int) (float64, error) {
	cmd := exec.Command("go", "run", "./batch/internal/flat", "-n", fmt.Sprint(items), "-workers", "20")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go run ./batch/internal/flat, which is to be run in the root of the repository: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	_, peak, ok := strings.Cut(lines[len(lines)-1], "peak RSS ")
	var mib float64
	if _, err := fmt.Sscanf(peak, "%f MiB", &mib); !ok || err != nil {
		return 0, errors.New("./batch/internal/flat printed no peak RSS: " + string(out))
	}
	return mib, nil
}
