//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"
)

const (
	kills    = 200
	killRows = 500
	inFlight = 16
	perSec   = 200
)

// killProof kills runs at random moments and resumes them until they are done,
// again and again. After each kill it waits for the stub to come to rest and
// compares what it has seen with what is in the result file: the difference is
// what will be sent again. The audit is reset between two lives of a run, so
// that the distance from the last start before a kill to the first after it
// can be told: if it is a whole window, no window holds starts of both.
func killProof(ctx context.Context, r *report) error {
	s, err := startStub(ctx, "", "--limit", fmt.Sprintf("%d/s", perSec), "--latency", "20ms..60ms")
	if err != nil {
		return err
	}
	defer s.stop()
	seed := uint64(time.Now().UnixNano())
	k := &killer{report: r, stub: s, state: r.file("state"), random: rand.New(rand.NewPCG(seed, 1)), closest: time.Hour}
	r.note("seed %d", seed)
	began := time.Now()
	for k.killed < kills {
		if err := k.complete(ctx); err != nil {
			return err
		}
		if k.runs%5 == 0 {
			r.note("%d kills so far", k.killed)
		}
	}
	r.check(k.killed >= kills, "%d kills of %d runs of %d rows, in %.0f s; %d came before anything was sent, %d cut a line",
		k.killed, k.runs, killRows, time.Since(began).Seconds(), k.early, k.torn)
	r.check(k.wrong == 0, "mete results fold has every id exactly once and answered: %d of %d runs", k.runs-k.wrong, k.runs)
	r.check(k.most <= inFlight, "requests sent again: %d, at most %d for one kill (in flight: %d)", k.repeats, k.most, inFlight)
	r.check(k.over == 0, "starts above the limit: %d; at most %d in any second of %d; %d lives of %d were left out because the stub was stalled beyond the margin of %v ms",
		k.over, k.starts, perSec, k.unsure, k.lives, margin)
	r.check(k.closest >= time.Second-time.Millisecond, "from the last start before a kill to the first after it: at least %.3f s of 1 s", k.closest.Seconds())
	return nil
}

type killer struct {
	report *report
	stub   *server
	state  string
	random *rand.Rand

	killed, runs, lives, early, torn int
	wrong                            int
	repeats, most                    int64 // requests sent again, and for one kill
	over, starts                     int64
	unsure                           int
	last                             float64 // latest start so far, in Unix milliseconds
	closest                          time.Duration
}

// complete does one run, kills included.
func (k *killer) complete(ctx context.Context) error {
	k.runs++
	input, out := k.report.file("rows.jsonl"), k.report.file("out.jsonl")
	var rows bytes.Buffer
	for i := range killRows {
		fmt.Fprintf(&rows, `{"id":"row-%03d","url":"%s/run/%d/%d"}`+"\n", i, k.stub.url, k.runs, i)
	}
	if err := os.WriteFile(input, rows.Bytes(), 0o600); err != nil {
		return err
	}
	var requests, lost int64
	for {
		if err := k.stub.reset(); err != nil {
			return err
		}
		run, err := startRun(ctx, k.state, input, "--rate", fmt.Sprintf("%d/s", perSec), "-c", fmt.Sprint(inFlight), "-o", out, "--resume")
		if err != nil {
			return err
		}
		killed := time.AfterFunc(k.moment(), func() { _ = run.cmd.Process.Kill() })
		f, err := run.wait()
		killed.Stop()
		if err != nil {
			return err
		}
		a, err := k.stub.settled(ctx)
		if err != nil {
			return err
		}
		requests += a.Requests
		k.lives++
		if over := a.Over["1s"] + a.Rejected; over > 0 && a.MaxStallMS > margin {
			k.unsure++
			k.report.note("life %d: %d in a second, %d over, %d rejected, left out: the stub was stalled for %.1f ms", k.lives, a.MaxStarts["1s"], a.Over["1s"], a.Rejected, a.MaxStallMS)
		} else {
			k.over += over
			k.starts = max(k.starts, a.MaxStarts["1s"])
		}
		if a.Requests > 0 {
			if k.last > 0 {
				k.closest = min(k.closest, time.Duration((a.FirstMS-k.last)*1e6))
			}
			k.last = a.LastMS
		}
		done, err := readRecords(out)
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		again := requests - int64(len(done)) - lost
		lost += again
		k.repeats += again
		if f.code >= 0 { // it came to its end
			if err := f.complete(killRows); err != nil {
				return fmt.Errorf("run %d: %w", k.runs, err)
			}
			break
		}
		k.killed++
		k.most = max(k.most, again)
		if a.Requests == 0 {
			k.early++
		}
		if data, err := os.ReadFile(out); err == nil && len(data) > 0 && data[len(data)-1] != '\n' {
			k.torn++
		}
	}
	if !k.folded(ctx, out) {
		k.wrong++
	}
	os.Remove(out)
	return nil
}

// moment is when a life ends. One in five ends while mete starts, or waits for
// the second that the limit has to be quiet after a kill.
func (k *killer) moment() time.Duration {
	if k.random.IntN(5) == 0 {
		return time.Duration(k.random.Int64N(int64(time.Second)))
	}
	return time.Second + time.Duration(k.random.Int64N(int64(700*time.Millisecond)))
}

// folded tells whether the folded output has each row once, and answered.
func (k *killer) folded(ctx context.Context, out string) bool {
	data, err := exec.CommandContext(ctx, program(), "results", "fold", out).Output()
	if err != nil {
		k.report.note("mete results fold: %v", err)
		return false
	}
	list, err := parseRecords(data)
	if err != nil {
		k.report.note("%v", err)
		return false
	}
	seen := map[string]bool{}
	for _, rec := range list {
		if !rec.OK || rec.Status != 200 || seen[rec.ID] {
			k.report.note("run %d: %s: status %d, seen before: %v", k.runs, rec.ID, rec.Status, seen[rec.ID])
			return false
		}
		seen[rec.ID] = true
	}
	for i := range killRows {
		if !seen[fmt.Sprintf("row-%03d", i)] {
			k.report.note("run %d: row-%03d is missing", k.runs, i)
			return false
		}
	}
	return len(list) == killRows
}
