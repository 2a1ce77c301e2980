package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// end prints the summary and turns how the run ended into an exit code.
func (j *runJob) end(signals *signals, s progress.Summary, res runner.Result, flushed error) error {
	code, how, err := exitOK, "finished", error(nil)
	gone := errors.Is(res.Err, journal.ErrReaderGone) || errors.Is(flushed, journal.ErrReaderGone)
	switch {
	case gone:
		code, how = 141, "the reader of the output has gone"
	case signals.code() != 0:
		code, how = signals.code(), "interrupted"
	case policyStop(res.Err) != nil && flushed == nil:
		err = res.Err
		code, how = exitPolicy, "stopped"
	case res.Err != nil || flushed != nil:
		err = res.Err
		if _, lost := errors.AsType[*journal.UnwrittenError](flushed); lost || err == nil {
			err = flushed
		}
		code, how = exitIO, "stopped"
		if _, ok := errors.AsType[*input.RowError](err); ok {
			code = exitUsage
		}
		if _, ok := errors.AsType[*runner.ChangedRow](err); ok {
			code = exitLocked
		}
	case len(res.Parked) > 0 && (res.Unfinished > 0 || s.Rows.Failed > 0):
		code, how = exitProvider, "stopped: "+strings.Join(res.Parked, "; ")
		if j.flags.quiet { // otherwise it is said twice already
			err = errors.New(strings.Join(res.Parked, "; "))
		}
	case len(res.Spent) > 0 && (res.Unfinished > 0 || s.Rows.Failed > 0):
		code, how = exitPolicy, "stopped: "+strings.Join(res.Spent, "; ")
	case s.Rows.Failed > 0 || res.Bad > 0:
		code = exitFailed
	}
	s.Name, s.End, s.Output = j.name(), how, j.flags.output
	if res.Unfinished > 0 || (code != exitOK && code != exitFailed) {
		s.Resume = j.resumeCommand(res.Unfinished == 0 && s.Rows.Failed > 0)
	}
	if !j.flags.quiet && !gone {
		switch j.flags.summary {
		case "text":
			if !j.display.IsTerminal || j.options.Render != nil {
				fmt.Fprintln(j.stderr) // apart from the lines above
			}
			_ = s.WriteText(j.stderr, j.display.Width())
		case "json":
			_ = s.WriteJSON(j.stderr)
		}
	}
	if j.options.Render != nil && !j.flags.quiet {
		fmt.Fprintln(j.stderr, "\nAdd -o FILE to keep the responses, and to make the run resumable.")
	}
	if err != nil {
		err = errors.New(j.mask(err.Error()))
	}
	if code == exitOK {
		return nil
	}
	return &exitError{code, err}
}

// policyStop is the error of a bound that ended the run, or nil.
func policyStop(err error) error {
	if s, ok := errors.AsType[*runner.Stopped](err); ok {
		return s
	}
	return nil
}

// resumeCommand is what to type to go on, with rows that failed if failed is set;
// empty if the run had no output file.
func (j *runJob) resumeCommand(failed bool) string {
	if j.flags.output == "" {
		return ""
	}
	words := []string{"mete"}
	resume := false
	failed = failed && !j.bounds.retryFailed
	for _, a := range os.Args[1:] {
		switch a {
		case "--overwrite":
			continue
		case "--resume":
			resume = true
		}
		words = append(words, shellQuote(a))
	}
	if !resume {
		words = append(words, "--resume")
	}
	if failed {
		words = append(words, "--retry-failed")
	}
	return j.mask(strings.Join(words, " "))
}

// render is how a record is shown to a person: one short line.
func render(dst []byte, r *record.Record) []byte {
	status := fmt.Sprint(r.Status)
	if r.Status == 0 {
		status = "---"
	}
	dst = fmt.Appendf(dst, "%s  %-6s %s  %d B  %.0f ms", status, r.Method, progress.Printable(r.URL), max(r.BodyBytes, int64(len(r.Body))), float64(r.Latency)/1e6)
	if r.Error != nil {
		dst = fmt.Appendf(dst, "  %s: %s", r.Error.Kind, progress.Printable(r.Error.Message))
	}
	return append(dst, '\n')
}
