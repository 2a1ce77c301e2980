//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

const (
	// margin is what mete leaves between its window and the provider's. If the
	// stub itself is stopped for longer, its stamps are off by more than any
	// client can leave, so a violation may be its own.
	margin   = 5.0 // milliseconds
	attempts = 6   // of a run that is disturbed so
)

// trial is one run at one rate against a stub with the same quota.
type trial struct {
	rate  string
	n     int
	per   time.Duration
	rows  int
	used  float64 // share of the limit that must be used
	busy  bool    // one core is kept busy meanwhile
	stops []time.Duration
}

func (t trial) String() string {
	s := t.rate
	if t.busy {
		s += ", one core busy"
	}
	if n := len(t.stops); n > 0 {
		s += fmt.Sprintf(", stopped %d x %v", n, t.stops[0])
	}
	return s
}

func ratesProof(ctx context.Context, r *report) error {
	// The slow ones disturb nobody and go together.
	together := []trial{
		{rate: "1/s", n: 1, per: time.Second, rows: 61, used: 0.99},
		{rate: "10/s", n: 10, per: time.Second, rows: 601, used: 0.99},
		{rate: "300/m", n: 300, per: time.Minute, rows: 361, used: 0.995},
	}
	var wait sync.WaitGroup
	errs := make([]error, len(together))
	for i, t := range together {
		if wanted(t) {
			wait.Go(func() { errs[i] = t.run(ctx, r) })
		}
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	pause, short := []time.Duration{2 * time.Second}, slices.Repeat([]time.Duration{100 * time.Millisecond}, 20)
	for _, t := range []trial{
		{rate: "50/s", n: 50, per: time.Second, rows: 1001, used: 0.99},
		{rate: "1000/s", n: 1000, per: time.Second, rows: 20_000, used: 0.985},
		{rate: "50/s", n: 50, per: time.Second, rows: 1001, used: 0.99, busy: true},
		{rate: "1000/s", n: 1000, per: time.Second, rows: 20_000, used: 0.985, busy: true},
		{rate: "50/s", n: 50, per: time.Second, rows: 501, stops: pause},
		{rate: "1000/s", n: 1000, per: time.Second, rows: 10_000, stops: pause},
		{rate: "1000/s", n: 1000, per: time.Second, rows: 10_000, stops: short},
	} {
		if !wanted(t) {
			continue
		}
		if err := t.run(ctx, r); err != nil {
			return err
		}
	}
	if len(os.Args) > 2 {
		return nil
	}
	return semaphoreBound(ctx, r)
}

// wanted tells whether a trial's name has the word that the user gave, if any.
func wanted(t trial) bool {
	return len(os.Args) < 3 || strings.Contains(t.String(), os.Args[2])
}

// run repeats a trial that failed while the stub was stalled.
func (t trial) run(ctx context.Context, r *report) error {
	for try := 1; ; try++ {
		a, f, err := t.once(ctx, r)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		ok, line := t.judge(a, f)
		if ok || a.MaxStallMS <= margin || try == attempts {
			r.check(ok, "%s", line)
			return nil
		}
		r.note("%s: run again, the stub was stalled beyond the margin of %v ms", line, margin)
	}
}

func (t trial) once(ctx context.Context, r *report) (a stub.Audit, f finished, err error) {
	s, err := startStub(ctx, "", "--limit", t.rate)
	if err != nil {
		return a, f, err
	}
	defer s.stop()
	if t.busy {
		stop, err := busyCore(ctx)
		if err != nil {
			return a, f, err
		}
		defer stop()
	}
	input := r.file("urls.txt")
	if err := urls(input, s.url, t.rows); err != nil {
		return a, f, err
	}
	run, err := startRun(ctx, r.file("state"), input, "--rate", t.rate, "-c", "64", "-o", r.file("out.jsonl"))
	if err != nil {
		return a, f, err
	}
	whole := t.ideal()
	for _, d := range t.stops {
		// The middle of its part of the run.
		if err := sleep(ctx, whole/time.Duration(len(t.stops)+1)); err != nil {
			return a, f, err
		}
		_ = run.cmd.Process.Signal(syscall.SIGSTOP)
		err := sleep(ctx, d)
		_ = run.cmd.Process.Signal(syscall.SIGCONT)
		if err != nil {
			return a, f, err
		}
	}
	if f, err = run.wait(); err != nil {
		return a, f, err
	}
	if f.code > 1 {
		return a, f, fmt.Errorf("exit code %d: %s", f.code, f.stderr)
	}
	a, err = s.audit()
	return a, f, err
}

// ideal is the least time from the first start to the last.
func (t trial) ideal() time.Duration {
	return time.Duration(float64(t.rows-1) / float64(t.n) * float64(t.per))
}

func (t trial) judge(a stub.Audit, f finished) (bool, string) {
	key := t.per.String()
	span := time.Duration(a.SpanMS * 1e6)
	used := float64(a.Requests-1) / span.Seconds() / (float64(t.n) / t.per.Seconds())
	ok := a.Over[key] == 0 && a.Rejected == 0 && a.Requests == int64(t.rows) && f.summary.Rows.OK == int64(t.rows)
	line := fmt.Sprintf("%-32v %6d rows: over %d, rejected %d, at most %d in %s, used %.4f",
		t, a.Requests, a.Over[key], a.Rejected, a.MaxStarts[key], key, used)
	if len(t.stops) == 0 {
		ok = ok && used >= t.used
		line += fmt.Sprintf(" (at least %.3f)", t.used)
	} else {
		var stopped time.Duration
		for _, d := range t.stops {
			stopped += d
		}
		// Each stop begins inside a pause between two starts, which is what it
		// may cost less; the wider window makes up for that.
		longer := span - t.ideal()
		ok = ok && longer >= stopped
		line += fmt.Sprintf(", %.3f s longer than the ideal (at least %.3f s)", longer.Seconds(), stopped.Seconds())
	}
	return ok, line + fmt.Sprintf(", stub stalled %.1f ms", a.MaxStallMS)
}

// semaphoreBound: 5 in flight of 200 ms are 25/s, half of what the limit lets
// through; mete must say which of the two it was.
func semaphoreBound(ctx context.Context, r *report) error {
	const rows = 250
	s, err := startStub(ctx, "", "--limit", "50/s", "--latency", "200ms")
	if err != nil {
		return err
	}
	defer s.stop()
	input, out := r.file("urls.txt"), r.file("out.jsonl")
	if err := urls(input, s.url, rows); err != nil {
		return err
	}
	run, err := startRun(ctx, r.file("state"), input, "--rate", "50/s", "-c", "5", "-o", out)
	if err != nil {
		return err
	}
	f, err := run.wait()
	if err != nil {
		return err
	}
	if err := f.complete(rows); err != nil {
		return err
	}
	a, err := s.audit()
	if err != nil {
		return err
	}
	records, err := readRecords(out)
	if err != nil {
		return err
	}
	bound := 0
	for _, rec := range records {
		if rec.Bound == "semaphore" {
			bound++
		}
	}
	first := ""
	if len(f.summary.Waits) > 0 {
		first = fmt.Sprintf("%s %.0f %%", f.summary.Waits[0].Bound, 100*f.summary.Waits[0].Share)
	}
	rate := float64(a.Requests-1) / (a.SpanMS / 1e3)
	ok := strings.HasPrefix(first, "semaphore") && strings.Contains(f.summary.Diagnosis, "Raise the concurrency") &&
		bound >= rows*9/10 && a.PeakInFlight == 5 && a.Over["1s"] == 0 && a.Rejected == 0
	r.check(ok, "-c 5, 200 ms, 50/s: %.2f/s (25 is what 5 permits give), %d in flight, %d of %d records bound by the semaphore; waits: %s; mete says: %s",
		rate, a.PeakInFlight, bound, rows, first, f.summary.Diagnosis)
	return nil
}
