//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metehttp"
)

// told is within what time of a situation's begin mete has to say so.
const told = 5 * time.Second

// situation is one that is staged in a run of mete against the stub.
type situation struct {
	name  string
	stub  []string
	run   []string
	env   []string
	rows  int
	fault string        // that begins it; empty is that the run does
	after time.Duration // from the start of the run to the fault
	pipe  time.Duration // between two rows of an input that is a pipe; 0 is a file
	want  string        // regular expression of the sentence
}

func diagnosisProof(ctx context.Context, r *report) error {
	for _, s := range []situation{
		{
			name: "a limit sets the pace", stub: []string{"--latency", "50ms"}, rows: 1000,
			run: []string{"--rate", "50/s", "-c", "32"}, want: `^50/s set the pace, as it should: more permits change nothing`,
		}, {
			name: "the provider slowed down", stub: []string{"--latency", "50ms"}, rows: 10_000,
			run: []string{"-c", "16"}, fault: `{"latency":"400ms"}`, after: 4 * time.Second,
			want: `^All 16 permits were in use, and the provider slowed down: calls take (39|4[0-4])[\d.]+ms, [3-9]\.\d times the [5-9][\d.]*ms before.*look at the provider`,
		}, {
			name: "too few permits", stub: []string{"--latency", "200ms"}, rows: 1000,
			run: []string{"--rate", "100/s", "-c", "5"}, want: `^All 5 permits were in use: 100/s x 20[\d.]+ms needs about 2\d .*Raise the concurrency`,
		}, {
			name: "paused", stub: []string{"--latency", "50ms"}, rows: 10_000,
			run: []string{"--rate", "200/s"}, fault: `{"limit":"1/30s"}`, after: 3 * time.Second,
			want: `^Paused for another .*s: the provider asked to stay away.*its limit is lower than the one given here`,
		}, {
			name: "a slow pipe as input", stub: []string{"--latency", "50ms"}, rows: 80, pipe: 100 * time.Millisecond,
			run: []string{"--rate", "200/s"}, want: `^Nothing waited: \d+ calls started as they came. The callers, or the input, set the pace`,
		}, {
			name: "no processor left", rows: 100_000, env: []string{"GOMAXPROCS=1"},
			run: []string{"-c", "64", "--jq", "[range(20000)] | add"}, want: `^This machine is the bound: .* of its only processor.*Make the work on each answer cheaper`,
		},
	} {
		if err := s.stage(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := hiddenPool(ctx, r); err != nil {
		return err
	}
	return leak(ctx, r)
}

// stage runs a situation to two seconds after it must have been told.
func (s situation) stage(ctx context.Context, r *report) error {
	srv, err := startStub(ctx, "", s.stub...)
	if err != nil {
		return err
	}
	defer srv.stop()
	var input io.Reader
	from := "-"
	if s.pipe == 0 {
		from = r.file("urls.txt")
		if err := urls(from, srv.url, s.rows); err != nil {
			return err
		}
	} else {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		input = read
		stop, ended := context.WithCancel(ctx)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := 0; i < s.rows && sleep(stop, s.pipe) == nil; i++ {
				fmt.Fprintf(write, "%s/row?n=%d\n", srv.url, i)
			}
			write.Close()
		}()
		// Until nothing is written any more there has to be a reader, or a
		// SIGPIPE ends the proof.
		defer func() { ended(); <-written; read.Close() }()
	}
	run, err := startWatched(ctx, r.file("state"), s.env, input, append([]string{from, "-o", r.file("out.jsonl")}, s.run...)...)
	if err != nil {
		return err
	}
	began := run.began
	if s.fault != "" {
		err = sleep(ctx, s.after)
		if err == nil {
			err = srv.fault(s.fault)
		}
		began = time.Now()
	}
	if err == nil {
		err = sleep(ctx, told+2*time.Second)
	}
	f, ended := run.end()
	if err != nil || ended != nil {
		return fmt.Errorf("%w, %w", err, ended)
	}
	if f.code != 130 && f.code != 0 {
		return fmt.Errorf("exit code %d: %s", f.code, f.stderr)
	}
	var lines []saying
	for _, l := range run.seen() {
		lines = append(lines, saying{l.at.Sub(began), l.Diagnosis})
	}
	r.told(s.name, lines, s.want)
	return nil
}

// saying is what was said so long after the situation began.
type saying struct {
	after time.Duration
	text  string
}

// told judges when the right sentence came, and that it stayed.
func (r *report) told(name string, lines []saying, want string) {
	is := regexp.MustCompile(want)
	first, right, since, last := time.Duration(-1), 0, 0, "nothing"
	for _, l := range lines {
		if l.after < 0 {
			continue
		}
		last = l.text
		ok := is.MatchString(l.text)
		if ok && first < 0 {
			first = l.after
		}
		if first >= 0 {
			if since++; ok {
				right++
			}
		}
	}
	r.check(first >= 0 && first <= told && is.MatchString(last), "%s: told after %.1f s (at most %.0f), then in %d of %d lines: %s",
		name, first.Seconds(), told.Seconds(), right, since, last)
}

// callers keep n goroutines at work until the returned function is called.
func callers(ctx context.Context, n int, work func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				_ = work(ctx)
			}
		})
	}
	return func() { cancel(); wait.Wait() }
}

// diagnosed listens to a gate for a while, as a program would from its Stats.
func diagnosed(ctx context.Context, g *mete.Gate) (lines []saying, err error) {
	began := time.Now()
	history := []mete.Stats{g.Stats()}
	for time.Since(began) < told+2*time.Second {
		if err := sleep(ctx, 250*time.Millisecond); err != nil {
			return nil, err
		}
		now := g.Stats()
		for len(history) > 1 && now.At.Sub(history[1].At) >= 3*time.Second {
			history = history[1:]
		}
		history = append(history, now)
		lines = append(lines, saying{time.Since(began), mete.Diagnose(history[0], now)})
	}
	return lines, nil
}

// hiddenPool: the transport has two connections, the gate ten permits.
func hiddenPool(ctx context.Context, r *report) error {
	srv, err := startStub(ctx, "", "--latency", "50ms")
	if err != nil {
		return err
	}
	defer srv.stop()
	g, err := mete.New(mete.Config{Name: "stub", Concurrency: 10, Limits: []mete.Limit{mete.Per(500, time.Second)}})
	if err != nil {
		return err
	}
	defer g.Close()
	transport := metehttp.New(g)
	pool := metehttp.NewPool(10)
	pool.MaxConnsPerHost = 2
	transport.Base = pool
	defer pool.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	stop := callers(ctx, 20, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	})
	lines, err := diagnosed(ctx, g)
	stop()
	r.told("a pool of connections that is too small", lines, `^Calls hold a permit for (19|2\d)[\d.]+ms before they reach the wire, (7|8)\d % of their time: .*Raise the transport's MaxConnsPerHost to at least the 10 permits`)
	return err
}

// leak: permits are taken and forgotten, some and then all. Their owner still
// refers to them, so that no garbage collection finds them.
func leak(ctx context.Context, r *report) error {
	g, err := mete.New(mete.Config{Name: "stub", Concurrency: 3, FindLeaks: true})
	if err != nil {
		return err
	}
	defer g.Close()
	var kept []*mete.Permit
	forget := func() error {
		p, err := g.Acquire(ctx, mete.Call{})
		kept = append(kept, p)
		return err
	}
	defer func() {
		for _, p := range kept {
			p.Release()
		}
	}()
	const place = `cmd/mete/internal/verify/proof/diagnosis\.go:\d+`
	for _, stage := range []struct {
		name string
		n    int
		want string
	}{
		{"one permit of three is leaked", 1, `^All 3 permits were in use, and one is probably leaked: it has been held for .*s, where calls take 2[\d.]+ms. It was taken at .*` + place},
		{"all permits are leaked", 2, `^All 3 permits are in use, and none came back for .*s: .*The oldest has been held for .*s; it was taken at .*` + place},
	} {
		for range stage.n {
			if err := forget(); err != nil {
				return err
			}
		}
		stop := callers(ctx, 6, func(ctx context.Context) error {
			return mete.Do(ctx, g, mete.Call{Patient: true}, func(ctx context.Context) error { return sleep(ctx, 20*time.Millisecond) })
		})
		lines, err := diagnosed(ctx, g)
		stop()
		if err != nil {
			return err
		}
		r.told(stage.name, lines, stage.want)
	}
	return nil
}
