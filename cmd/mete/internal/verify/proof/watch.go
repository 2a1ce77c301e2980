//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// shown is a line of the progress of a run, as JSON, and when it came.
type shown struct {
	at          time.Time
	Time        string
	Concurrency int
	Diagnosis   string
}

// watched is a mete run that is asked for its progress all the time.
type watched struct {
	*running
	done chan struct{}

	mu    sync.Mutex
	ended bool // it was asked to end; what it says then does not count
	rest  []byte
	lines []shown
	text  bytes.Buffer
}

// Write takes what the run writes to its standard error.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s := shown{at: time.Now()}
		if json.Unmarshal(line, &s) == nil && s.Time != "" && s.Concurrency > 0 && !w.ended {
			w.lines = append(w.lines, s)
		}
		w.rest = rest
	}
}

// startWatched starts a run that is asked for a line four times a second, by
// the signal for it. env is added to the environment; input may be nil.
func startWatched(ctx context.Context, state string, env []string, input io.Reader, args ...string) (*watched, error) {
	args = append([]string{"run", "--state", state, "--progress", "json", "--summary", "json"}, args...)
	w := &watched{running: &running{cmd: command(ctx, measured, program(), args...), began: time.Now()}, done: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), env...)
	w.cmd.Stdin, w.cmd.Stderr = input, w
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		// Before mete listens for the signal it would end it.
		for t := time.NewTimer(time.Second); ; t.Reset(250 * time.Millisecond) {
			select {
			case <-w.done:
				return
			case <-t.C:
				_ = w.cmd.Process.Signal(syscall.SIGUSR1)
			}
		}
	}()
	return w, nil
}

// end asks the run to end and waits for it.
func (w *watched) end() (finished, error) {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	_ = w.cmd.Process.Signal(syscall.SIGINT)
	return w.wait()
}

// wait waits for the end of the run.
func (w *watched) wait() (finished, error) {
	f, err := w.running.wait()
	close(w.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	f.stderr = w.text.String()
	for line := range bytes.Lines(w.text.Bytes()) {
		_ = json.Unmarshal(line, &f.summary)
	}
	return f, err
}

// seen are the lines so far.
func (w *watched) seen() []shown {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}
