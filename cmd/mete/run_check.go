package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/runner"
	"github.com/metehq/mete/cmd/mete/internal/template"
)

// What is looked at before anything is sent.

// check reads the whole input before anything is sent.
func (j *runJob) check(ctx context.Context) (int64, error) {
	sum, err := input.Scan(ctx, j.args, j.input)
	if err != nil {
		if ctx.Err() != nil {
			return 0, &exitError{code: 130}
		}
		return 0, inputError(err)
	}
	return j.checked(&sum)
}

// tryOut is a dry run.
func (j *runJob) tryOut(ctx context.Context) error {
	sum, err := j.sum(ctx)
	if ctx.Err() != nil {
		return &exitError{code: 130}
	}
	if err != nil {
		return inputError(err)
	}
	if _, err := j.checked(&sum); err != nil {
		return err
	}
	return j.dryRun(&sum, j.scan)
}

// sum reads the whole input, in advance if it can be read twice.
func (j *runJob) sum(ctx context.Context) (input.Summary, error) {
	if j.scan {
		return input.Scan(ctx, j.args, j.input)
	}
	source, err := input.Open(j.args, interruptible(ctx, j.stdin), j.input)
	if err != nil {
		return input.Summary{}, err
	}
	defer source.Close()
	return source.Sum(ctx)
}

// checked says what is wrong with the rows, if that ends the run, and how many
// there are.
func (j *runJob) checked(sum *input.Summary) (int64, error) {
	if sum.ErrorCount > 0 && j.flags.onBadRow == "fail" {
		alike, shown := map[string]int{}, int64(0)
		for _, e := range sum.Errors {
			if alike[e.Message]++; alike[e.Message] > 3 {
				continue // what is wrong with all rows need not be said of each
			}
			shown++
			fmt.Fprintln(j.stderr, j.mask(e.Error()))
			if d := e.Detail(); d != "" {
				fmt.Fprintln(j.stderr, j.mask(d))
			}
		}
		if n := sum.ErrorCount - shown; n > 0 {
			fmt.Fprintf(j.stderr, "and %d more\n", n)
		}
		return 0, &exitError{exitUsage, fmt.Errorf("%w; nothing was sent (--on-bad-row emit goes on without them)", sum.Err())}
	}
	if j.flags.onBadRow == "emit" {
		return sum.Rows + sum.ErrorCount, nil
	}
	return sum.Rows, nil
}

func inputError(err error) error {
	if t, ok := errors.AsType[*template.Error](err); ok && t.Detail() != "" {
		err = fmt.Errorf("%w\n%s", err, t.Detail())
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return &exitError{exitUsage, err}
}

// checkChanges refuses a resume whose rows are not those that were sent, before
// anything is: with an id that is kept, the answer would be to another request.
func (j *runJob) checkChanges(ctx context.Context, out *journal.Journal) error {
	if !j.scan || j.how.OnChange != "fail" || out.Resumed().Rows == 0 {
		return nil
	}
	source, err := input.Open(j.args, nil, j.input)
	if err != nil {
		return inputError(err)
	}
	defer source.Close()
	for row, err := range source.Rows() {
		if ctx.Err() != nil {
			return &exitError{code: 130}
		}
		if err != nil {
			continue // a bad row: what becomes of it is said elsewhere
		}
		if runner.Changed(out, row) {
			return &exitError{exitLocked, errors.New(j.mask(runner.ChangedError(row).Error()) + "; nothing was sent")}
		}
	}
	return nil
}

// interruptible is r, but a Read that waits ends with ctx: closing standard
// input does not wake up who reads it. Nothing is read before the first Read.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	return &stdinReader{ctx: ctx, from: r}
}

type stdinReader struct {
	ctx  context.Context
	from io.Reader
	pipe *io.PipeReader
}

func (s *stdinReader) Read(p []byte) (int, error) {
	if s.pipe == nil {
		r, w := io.Pipe()
		s.pipe = r
		context.AfterFunc(s.ctx, func() { r.CloseWithError(os.ErrClosed) })
		go func() {
			_, err := io.Copy(w, s.from)
			w.CloseWithError(err)
		}()
	}
	return s.pipe.Read(p)
}
