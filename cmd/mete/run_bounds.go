package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// boundFlags are what a run may do at most, and what it does beside sending.
type boundFlags struct {
	dryRun      bool
	retryFailed bool
	maxRequests int64
	deadline    time.Duration
	halt        string
	dedup       string
	jq          string
	failures    string
}

func (f *boundFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.BoolVarP(&f.dryRun, "dry-run", "n", false, "check everything, show three requests, send nothing")
	s.BoolVar(&f.retryFailed, "retry-failed", false, "with --resume: send failed rows again")
	s.Int64Var(&f.maxRequests, "max-requests", 0, "stop after `N` requests, repetitions included")
	s.DurationVar(&f.deadline, "deadline", 0, "start nothing more after `TIME`")
	s.StringVar(&f.halt, "halt", "", "stop when rows fail: `soon,fail=3%` or now,fail=10")
	s.StringVar(&f.dedup, "dedup", "none", "rows that share one request: `none|request|key`")
	s.StringVar(&f.jq, "jq", "", "keep the value of this `EXPR` of the body as \"value\"")
	s.StringVar(&f.failures, "errors", "", "keep the records of failed rows in `FILE`, too, one for each")
}

// apply puts the flags into the options of a run.
func (f *boundFlags) apply(c *cobra.Command, o *runner.Options) error {
	// A script may have come to 0: that is not "no bound".
	switch changed := c.Flags().Changed; {
	case changed("max-requests") && f.maxRequests < 1:
		return fmt.Errorf("--max-requests %d: want at least 1", f.maxRequests)
	case changed("deadline") && f.deadline <= 0:
		return fmt.Errorf("--deadline %v: want a time above 0", f.deadline)
	}
	o.MaxRequests, o.Deadline, o.RetryFailed = f.maxRequests, f.deadline, f.retryFailed
	switch o.Dedup = runner.Dedup(f.dedup); o.Dedup {
	case runner.DedupNone, runner.DedupRequest, runner.DedupKey:
	default:
		return fmt.Errorf("--dedup %s: want none, request, key", f.dedup)
	}
	if f.halt != "" {
		h, err := runner.ParseHalt(f.halt)
		if err != nil {
			return fmt.Errorf("--halt: %w", err)
		}
		o.Halt = h
	}
	if f.jq != "" {
		value, err := compileJQ(f.jq)
		if err != nil {
			return fmt.Errorf("--jq %s: %w", f.jq, err)
		}
		o.Value = value
	}
	return nil
}

// compileJQ makes the function that picks a value out of a JSON body: the first
// that expr gives, null if it gives none. Integers keep their digits.
func compileJQ(expr string) (func([]byte) ([]byte, error), error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	return func(body []byte) ([]byte, error) {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, errors.New("the body is not JSON")
		}
		value, ok := code.Run(v).Next()
		if !ok {
			return []byte("null"), nil
		}
		if err, isErr := value.(error); isErr {
			return nil, err
		}
		return gojq.Marshal(value)
	}, nil
}

// dryRun shows what a run would do.
func (j *runJob) dryRun(sum *input.Summary, checked bool) error {
	w := &bytes.Buffer{}
	for _, row := range sum.First {
		text, err := runner.Show(&j.options, row)
		if err != nil {
			return &exitError{exitUsage, errors.New(j.mask(fmt.Sprintf("%s:%d: %v", row.File, row.Line, err)))}
		}
		fmt.Fprintln(w, j.mask(text))
	}
	fmt.Fprintf(w, "rows        %d\n", sum.Rows)
	if sum.Skipped > 0 {
		fmt.Fprintf(w, "skipped     %d\n", sum.Skipped)
	}
	if sum.ErrorCount > 0 {
		fmt.Fprintf(w, "bad rows    %d\n", sum.ErrorCount)
	}
	fmt.Fprintf(w, "duplicates  %d", sum.DuplicateRequests)
	if sum.DuplicateRequests > 0 && j.bounds.dedup == "none" {
		fmt.Fprint(w, "   (--dedup request sends each once)")
	}
	fmt.Fprintln(w)
	for _, unit := range slices.Sorted(maps.Keys(sum.Costs)) {
		name := unit
		if name == "" {
			name = "cost"
		}
		fmt.Fprintf(w, "%-11s %d   (per row %d to %d, mean %.1f)\n", name, sum.Costs[unit], sum.Cheapest[unit], sum.Dearest[unit], float64(sum.Costs[unit])/float64(max(sum.Costed, 1)))
	}
	rows := sum.Rows
	if j.bounds.dedup == "request" {
		rows -= sum.DuplicateRequests
	}
	if d, limit := j.options.Least(rows, sum.Costs); limit != "" {
		step := time.Second
		if d < 10*step {
			step = 10 * time.Millisecond
		}
		fmt.Fprintf(w, "takes       at least %s, by %s\n", d.Round(step), limit)
	} else {
		fmt.Fprintln(w, "takes       as long as the provider needs: no limit is set")
	}
	if !checked {
		fmt.Fprintln(w, "The input cannot be read twice: a run checks it as it reads.")
	}
	fmt.Fprintln(w, "Nothing was sent.")
	_, err := j.stdout.Write(w.Bytes())
	if errors.Is(err, syscall.EPIPE) {
		return &exitError{code: 141}
	}
	if err != nil {
		return &exitError{exitIO, err}
	}
	return nil
}
