package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/places"
	"github.com/metehq/mete/cmd/mete/internal/stub"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "See a naive fan-out and mete side by side, without a network",
		Long: `Look up 400 place names at a fake provider that takes 20 calls a second, in two
ways and each at a provider of its own:

  naive  64 workers that call, and on a 429 sleep twice as long as the last
         time and call again, as most first versions of such a program do
  mete   what "mete run places.txt --rate 20/s" does

It needs no network and no account, sends to 127.0.0.1 only, leaves nothing
behind and ends by itself in under a minute. What the table says about calls is
what the providers saw, not what the callers believe:

  calls           arrivals at the provider
  rejected (429)  of these, above the limit and refused
  repeats         calls that brought no answer, or one that was there already
  time            from the start to the last answer
  rate used       accepted calls a second, of those allowed
  busiest second  most arrivals in any second, on whatever instant it begins
  bound           what calls waited for most

The names are from GeoNames (https://www.geonames.org), CC BY 4.0.`,
		Example: `  # watch it
  mete demo

  # the table only, for a file
  mete demo 2>/dev/null > demo.txt

  # then try the provider by hand
  mete stub --listen 127.0.0.1:7070 --limit 20/s --latency 80ms..200ms`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
			if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
				list = append(list, syscall.SIGHUP)
			}
			ctx, restore := signal.NotifyContext(c.Context(), list...)
			defer restore()
			context.AfterFunc(ctx, restore) // a second Ctrl-C ends it at once
			d := demo{
				places:   places.All(),
				limit:    stub.Limit{N: 20, Per: time.Second},
				latency:  stub.Latency{Min: 80 * time.Millisecond, Max: 200 * time.Millisecond},
				workers:  64,
				patience: 28 * time.Second,
				self:     os.Args[0],
				live:     newScreen(c.ErrOrStderr()),
				table:    newScreen(c.OutOrStdout()),
			}
			return d.run(ctx)
		},
	}
}

// demo is what is shown.
type demo struct {
	places   []places.Place
	limit    stub.Limit
	latency  stub.Latency
	workers  int
	patience time.Duration // after which a side is stopped, so that it ends
	self     string        // how this program was called
	live     screen        // for what goes on
	table    screen        // for what came of it
}

// side is one of the two programs, with a provider of its own.
type side struct {
	name, how string
	provider  *stub.Server
	total     int

	mu    sync.Mutex
	begun time.Time     // zero before it works
	took  time.Duration // zero until it has worked
	bound string        // what it waited for most, empty if it cannot tell
	share float64       // of the waits
	err   error
}

// run shows the two sides at work and compares them. It ends early, with exit
// code 130, when ctx does.
func (d *demo) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "mete-demo-")
	if err != nil {
		return &exitError{exitIO, err}
	}
	defer os.RemoveAll(dir)
	naive := &side{name: "naive", how: fmt.Sprintf("%d workers", d.workers)}
	mete := &side{name: "mete", how: "--rate " + d.limit.String()}
	sides := []*side{naive, mete}
	for _, s := range sides {
		s.total = len(d.places)
		s.provider = stub.New(stub.Config{Limits: []stub.Limit{d.limit}, Latency: d.latency, Seed: 1})
		if err := s.provider.Start(); err != nil {
			return &exitError{exitIO, err}
		}
		defer s.provider.Close()
	}

	d.introduce()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// One after the other, so that neither takes the processor from the other.
		naive.time(ctx, d.patience, func(ctx context.Context) error { return fanOut(ctx, d.workers, d.urls(naive)) })
		mete.time(ctx, d.patience, func(ctx context.Context) error { return d.mete(ctx, mete, dir) })
	}()
	d.live.follow(sides, done)

	switch {
	case ctx.Err() != nil:
		return &exitError{130, errors.New("demo stopped; nothing is left behind")}
	case naive.err != nil || mete.err != nil:
		return errors.Join(naive.err, mete.err)
	}
	os.RemoveAll(dir) // now: a closed pipe ends the program while it prints
	d.compare(sides)
	d.tryNext()
	return nil
}

// time runs the side, for as long as patience allows, and notes how long it took.
func (s *side) time(ctx context.Context, patience time.Duration, work func(context.Context) error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	s.mu.Lock()
	s.begun = time.Now()
	s.mu.Unlock()
	err := work(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.err = time.Since(s.begun), err
}

// elapsed is how long the side has been working, or took.
func (s *side) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.took > 0:
		return s.took
	case s.begun.IsZero():
		return 0
	}
	return time.Since(s.begun)
}

// urls are what a side asks its provider for.
func (d *demo) urls(s *side) []string {
	var urls []string
	for _, p := range d.places {
		q := url.Values{"place": {p.Name}, "country": {p.Country}}
		urls = append(urls, s.provider.URL()+"/geocode?"+q.Encode())
	}
	return urls
}

// mete is this program itself: mete run, with the flags that a user would type
// and a quiet end. What it waited for is in its summary.
func (d *demo) mete(ctx context.Context, s *side, dir string) error {
	list := filepath.Join(dir, "places.txt")
	text := strings.Join(d.urls(s), "\n") + "\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		return &exitError{exitIO, err}
	}
	self, err := os.Executable()
	if err != nil {
		return &exitError{exitIO, err}
	}
	cmd := exec.CommandContext(ctx, self, "run", list, "--rate", d.limit.String(), "-o", filepath.Join(dir, "out.jsonl"),
		"--state", "none", "--progress", "none", "--summary", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // what is in flight may finish
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	var summary struct {
		Waits []struct {
			Bound string
			Share float64
		}
	}
	if err == nil {
		err = json.Unmarshal(stderr.Bytes(), &summary)
	}
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("mete run: %w\n%s", err, bytes.TrimSpace(stderr.Bytes()))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range summary.Waits {
		if w.Share > s.share {
			s.bound, s.share = w.Bound, w.Share
		}
	}
	return nil
}
