//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	latency   = 50 * time.Millisecond // of the stub up to its knee
	wantRate  = 0.93                  // of what the best fixed concurrency gives
	wantSlow  = 1.8                   // times the latency without load, at most
	adaptRows = 12_800                // 20 s at a knee of 32
)

// adapted is what a run made of the stub.
type adapted struct {
	rate   float64 // rows per second
	median float64 // latency in milliseconds
	stall  float64 // of the stub, in milliseconds
}

func (a adapted) String() string {
	return fmt.Sprintf("%.1f/s, p50 %.1f ms", a.rate, a.median)
}

// during is what of the records ended from one time to another.
func during(records []result, from, to time.Time) (a adapted) {
	var latencies []float64
	for _, r := range records {
		if r.OK && !r.End.Before(from) && r.End.Before(to) {
			latencies = append(latencies, r.Latency)
		}
	}
	a.rate = float64(len(latencies)) / to.Sub(from).Seconds()
	if slices.Sort(latencies); len(latencies) > 0 {
		a.median = latencies[len(latencies)/2]
	}
	return a
}

// adaptiveProof compares -c auto with fixed numbers at a provider that gets
// slower beyond 32 in flight, and changes the provider under it.
func adaptiveProof(ctx context.Context, r *report) error {
	s, err := startStub(ctx, "", "--latency", latency.String(), "--knee", "32")
	if err != nil {
		return err
	}
	defer s.stop()
	unloaded, err := adaptRun(ctx, r, s, "4", 400)
	if err != nil {
		return err
	}
	r.note("-c 4: %v: that is without load", unloaded)
	for _, part := range []func(context.Context, *report, *server, adapted) error{adaptKnee, adaptFault, adaptOutage, adaptLimited} {
		if err := part(ctx, r, s, unloaded); err != nil {
			return err
		}
		if err := s.fault(`{"clear":true}`); err != nil {
			return err
		}
	}
	return nil
}

// adaptRun sends so many rows with -c c. The start counts.
func adaptRun(ctx context.Context, r *report, s *server, c string, rows int) (a adapted, err error) {
	if err := s.reset(); err != nil {
		return a, err
	}
	input, out := r.file("urls.txt"), r.file("out.jsonl")
	if err := urls(input, s.url, rows); err != nil {
		return a, err
	}
	began := time.Now()
	run, err := startRun(ctx, r.file("state"), input, "-c", c, "-o", out)
	if err != nil {
		return a, err
	}
	f, err := run.wait()
	if err != nil {
		return a, err
	}
	if err := f.complete(rows); err != nil {
		return a, err
	}
	records, err := readRecords(out)
	if err != nil {
		return a, err
	}
	var last time.Time
	for _, rec := range records {
		if rec.End.After(last) {
			last = rec.End
		}
	}
	a = during(records, began, last.Add(time.Millisecond))
	audit, err := s.audit()
	a.stall = audit.MaxStallMS
	return a, err
}

// adaptKnee: auto beside fixed numbers, in turn. It has to find what they are
// told.
func adaptKnee(ctx context.Context, r *report, s *server, unloaded adapted) error {
	var best adapted
	var bestC string
	fixed := func(c string) error {
		a, err := adaptRun(ctx, r, s, c, adaptRows)
		r.note("-c %-4s %d rows: %v, stub stalled %.1f ms", c, adaptRows, a, a.stall)
		if a.rate > best.rate {
			best, bestC = a, c
		}
		return err
	}
	var autos []adapted
	for _, c := range []string{"16", "24", "auto", "32", "48", "auto", "64"} {
		if c != "auto" {
			if err := fixed(c); err != nil {
				return err
			}
			continue
		}
		a, err := adaptRun(ctx, r, s, c, adaptRows)
		if err != nil {
			return err
		}
		autos = append(autos, a)
	}
	for _, a := range autos {
		for try := 1; ; try++ {
			ok := a.rate >= wantRate*best.rate && a.median <= wantSlow*unloaded.median
			line := fmt.Sprintf("-c auto %d rows: %v: %.3f of the best fixed number, %s with %.1f/s (at least %.2f), %.2f times the latency without load (at most %.1f), stub stalled %.1f ms",
				adaptRows, a, a.rate/best.rate, bestC, best.rate, wantRate, a.median/unloaded.median, wantSlow, a.stall)
			if ok || a.stall <= margin || try == adaptTries {
				r.check(ok, "%s", line)
				break
			}
			r.note("%s: run again, the stub was stalled beyond %v ms", line, margin)
			best = adapted{}
			if err := fixed(bestC); err != nil {
				return err
			}
			var err error
			if a, err = adaptRun(ctx, r, s, "auto", adaptRows); err != nil {
				return err
			}
		}
	}
	return nil
}

const adaptTries = 3

// adaptChange changes the stub in the middle of a run with -c auto, lets it go
// on for a while, ends it, and returns what it wrote and when the change was.
func adaptChange(ctx context.Context, r *report, s *server, fault string, after, then time.Duration) ([]result, time.Time, error) {
	none := time.Time{}
	if err := s.fault(`{"clear":true}`); err != nil {
		return nil, none, err
	}
	if err := s.reset(); err != nil {
		return nil, none, err
	}
	input, out := r.file("urls.txt"), r.file("out.jsonl")
	if err := urls(input, s.url, 40_000); err != nil {
		return nil, none, err
	}
	run, err := startWatched(ctx, r.file("state"), nil, nil, input, "-c", "auto", "-o", out)
	if err != nil {
		return nil, none, err
	}
	if err = sleep(ctx, after); err == nil {
		err = s.fault(fault)
	}
	changed := time.Now()
	if err == nil {
		err = sleep(ctx, then)
	}
	f, ended := run.end()
	if err != nil || ended != nil {
		return nil, none, fmt.Errorf("%w, %w", err, ended)
	}
	if f.code != 130 {
		return nil, none, fmt.Errorf("exit code %d: %s", f.code, f.stderr)
	}
	limits := ""
	for _, l := range run.seen() {
		limits += fmt.Sprintf(" %d", l.Concurrency)
	}
	r.note("%s after %v; permits, four times a second:%s", fault, after, limits)
	records, err := readRecords(out)
	return records, changed, err
}

// again judges a trial, and repeats it if it failed while the stub stalled.
func (r *report) again(s *server, trial func() (bool, string, error)) error {
	for try := 1; ; try++ {
		ok, line, err := trial()
		if err != nil {
			return err
		}
		a, err := s.audit()
		if err != nil {
			return err
		}
		line += ", stub stalled " + strconv.FormatFloat(a.MaxStallMS, 'f', 1, 64) + " ms"
		if ok || a.MaxStallMS <= margin || try == adaptTries {
			r.check(ok, "%s", line)
			return nil
		}
		r.note("%s: run again, the stub was stalled beyond %v ms", line, margin)
	}
}

// adaptFault: half the capacity is gone from one moment to the next, and auto
// is at the new knee within five seconds.
func adaptFault(ctx context.Context, r *report, s *server, unloaded adapted) error {
	const knee = 16
	ideal := knee / latency.Seconds()
	return r.again(s, func() (bool, string, error) {
		records, changed, err := adaptChange(ctx, r, s, fmt.Sprintf(`{"knee":%d}`, knee), 8*time.Second, 11*time.Second)
		if err != nil {
			return false, "", err
		}
		a := during(records, changed.Add(5*time.Second), changed.Add(10*time.Second))
		return a.rate >= wantRate*ideal && a.median <= wantSlow*unloaded.median,
			fmt.Sprintf("knee 16, 5 to 10 s after: %v: %.3f of %.0f/s (at least %.2f), %.2f times the latency without load (at most %.1f)",
				a, a.rate/ideal, ideal, wantRate, a.median/unloaded.median, wantSlow), nil
	})
}

// adaptOutage: five seconds in which everything is answered 503, and then the
// pace of before.
func adaptOutage(ctx context.Context, r *report, s *server, _ adapted) error {
	const outage, within = 5 * time.Second, 5 * time.Second
	return r.again(s, func() (bool, string, error) {
		records, changed, err := adaptChange(ctx, r, s, `{"outage":true,"for":"5s"}`, 8*time.Second, outage+12*time.Second)
		if err != nil {
			return false, "", err
		}
		before := during(records, changed.Add(-4*time.Second), changed)
		over := changed.Add(outage)
		back := time.Duration(0)
		for ; back < 10*time.Second; back += 100 * time.Millisecond {
			if during(records, over.Add(back), over.Add(back+time.Second)).rate >= 0.9*before.rate {
				break
			}
		}
		after := during(records, over.Add(within), over.Add(11*time.Second))
		return back <= within && after.rate >= 0.9*before.rate,
			fmt.Sprintf("outage of %v: %v before; back at 0.9 of it %.1f s after the end (at most %.0f), %v from %v to 11s after",
				outage, before, back.Seconds(), within.Seconds(), after, within), nil
	})
}

// adaptLimited: a rate sets the pace, so latencies say nothing about the
// number of permits.
func adaptLimited(ctx context.Context, r *report, s *server, _ adapted) error {
	const rows, initial = 1200, 20
	input := r.file("urls.txt")
	if err := urls(input, s.url, rows); err != nil {
		return err
	}
	run, err := startWatched(ctx, r.file("state"), nil, nil, input, "-c", "auto", "--rate", "100/s", "-o", r.file("out.jsonl"))
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
	lines := run.seen()
	moved := slices.DeleteFunc(slices.Clone(lines), func(l shown) bool { return l.Concurrency == initial })
	r.check(len(lines) >= 30 && len(moved) == 0, "-c auto --rate 100/s: the progress told %d permits %d times and something else %d times; mete says: %s",
		initial, len(lines)-len(moved), len(moved), f.summary.Diagnosis)
	return nil
}
