package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

func newRunCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [INPUT…]",
		Short: "Send a file of requests at exactly the rate the provider allows",
		Long: `Send every request of the input, at the limits and never above them, and write
one JSON record for each. INPUT is a file, several, or - for standard input:

  urls      one URL per line, or METHOD URL; # begins a comment line
  jsonl     one object per line: {"id","url","method","headers","body","meta",…}
  csv, tsv  a table, whose columns --url, -H, -d and --json fill in: {{.name}}
  lines     plain text, for the same: {{.line}}
  openai-batch, anthropic-batch   files for the batch services, by -F

Values are escaped for the place they stand in, {{raw .name}} are not. Input may
be packed with gzip or zstd.

With -o FILE the result file is the journal: after a crash, a Ctrl-C or a full
disk the same command with --resume goes on where it stopped and sends nothing
twice that has an answer. Without -o records go to standard output.

Limits hold per provider: those of the configuration file by name, every other
scheme://host:port by itself.

With fallback providers, in the file or by --fallback, a row goes to the next
one when its provider is paused for longer than max_wait or given up, when a
quota or budget is used up, or when attempts fail there in a way that may be
repeated. It never does after an answer that is the row's own fault (4xx), nor
where nobody knows whether a request that must not be repeated was done. All
its providers share the attempts of the first, and each is asked with its own
address, headers and credentials, at its own limits.

Exit codes: 0 all rows ok, 1 some failed, 2 wrong usage or input and nothing
sent, 3 stopped by a budget, --halt, --max-requests, --max-cost or --deadline,
4 a provider cannot be used, 5 local files, 6 output locked or not
resumable, 130 interrupted.`,
		Example: `  # a list of URLs, at most 50 in any second and 1000 in any minute
  mete run urls.txt --rate 50/s --rate 1000/m -o out.jsonl

  # after Ctrl-C, or a crash: go on
  mete run urls.txt --rate 50/s --rate 1000/m -o out.jsonl --resume

  # requests with bodies and a key from the environment, limits from mete.yaml
  mete run prompts.jsonl --provider openai -f mete.yaml -o out.jsonl`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.register(c)
	c.SetHelpFunc(func(c *cobra.Command, args []string) { runHelp(c, asksShort(args), c.OutOrStdout()) })
	return c
}

func inFile(section, example string) string {
	return fmt.Sprintf("lives in the file: write %q in mete.yaml and name it with -f", section+": {"+example+"}")
}

func (f *runFlags) run(c *cobra.Command, args []string) error {
	job, err := f.job(c, args)
	if err != nil {
		return err
	}
	return job.run()
}

// job checks the command line and the input's names.
func (f *runFlags) job(c *cobra.Command, args []string) (*runJob, error) {
	for _, l := range later {
		for name := range strings.FieldsSeq(l.names) {
			if c.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s is not available yet (%s)", name, l.what)
			}
		}
	}
	for _, m := range moved {
		if c.Flags().Changed(m.flag) {
			return nil, fmt.Errorf("--%s %s", m.flag, m.instead)
		}
	}
	if c.Flags().Changed("verbose") {
		return nil, errors.New("-v is not available yet")
	}
	stdin, isFile := c.InOrStdin().(*os.File)
	if len(args) == 0 && isFile && isatty.IsTerminal(stdin.Fd()) {
		c.SetOut(c.ErrOrStderr())
		c.HelpFunc()(c, []string{"-h"}) // nothing to read: do not hang
		return nil, &exitError{exitUsage, errors.New("name a file of requests, or - for what you type")}
	}
	return f.prepare(c, args)
}

// runJob is a run that is ready to start.
type runJob struct {
	flags   *runFlags
	args    []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  *quietable
	input   input.Options
	how     config.Run
	scan    bool
	bounds  *boundFlags
	options runner.Options
	mask    func(string) string
	display progress.Options
	id      string
	tune    *tuning // of mete tune; nil in mete run
}

// run scans, opens the output, sends, and says how it went.
func (j *runJob) run() error {
	defer runtime.KeepAlive(lean())
	signals := watchSignals()
	defer signals.stop()
	if j.bounds.dryRun {
		return j.tryOut(signals.admit)
	}
	total := int64(-1)
	if j.scan {
		n, err := j.check(signals.admit)
		if err != nil {
			return err
		}
		total = n
		afterScan()
	}
	out, err := j.open()
	if err != nil {
		return err
	}
	defer out.Close()
	if err := j.checkChanges(signals.admit, out); err != nil {
		return err
	}
	source, err := input.Open(j.args, interruptible(signals.admit, j.stdin), j.input)
	if err != nil {
		return inputError(err)
	}
	defer source.Close()
	stopReading := context.AfterFunc(signals.admit, func() { source.Close() })
	defer stopReading()

	o := j.options
	if j.flags.resume && len(o.MaxCost) > 0 {
		if o.Spent, err = spent(j.flags.output, out.Previous()); err != nil {
			return &exitError{exitIO, err}
		}
	}
	o.Journal, o.Source, o.Files, o.Total = out, source, max(len(j.args), 1), total
	var failures *failuresFile
	if path := j.bounds.failures; path != "" {
		if failures, err = openFailures(path, out); err != nil {
			return &exitError{exitIO, err}
		}
		defer failures.file.Close()
		o.Failures = failures
	}
	var show *progress.Progress
	notes := []string{}
	o.Note = func(text string) {
		if show == nil {
			notes = append(notes, text)
			return
		}
		show.Note(j.mask(text))
	}
	admit, stop := context.WithCancel(signals.admit)
	defer stop()
	r, err := runner.New(admit, o)
	if err != nil {
		return err
	}
	name := j.name()
	j.display.Snapshot = func() progress.Snapshot {
		s := r.Snapshot()
		s.Name = name
		if signals.admit.Err() != nil {
			s.State = "draining"
		}
		return s
	}
	shown := progress.New(j.display)
	show = shown
	if before := out.Previous(); before != nil {
		now := out.Manifest()
		if changes := now.Differences(before); len(changes) > 0 {
			notes = append(notes, "since the last run: "+strings.Join(changes, ", "))
		}
	}
	for _, n := range append(out.Notices(), notes...) {
		shown.Note(j.mask(n))
	}
	signals.onStatus(shown.Now)
	go shown.Run(context.Background())
	tuned := func() {}
	if j.tune != nil {
		tuned = j.tune.drive(admit, stop, r, shown)
	}
	res := r.Run(signals.hard)
	tuned()
	unkept := out.KeepUnrecorded(res.Unrecorded)
	if !j.bounds.retryFailed && res.Changed == 0 {
		failures = nil // no row was sent again: it is as it is to be
	}
	flushed := errors.Join(j.close(signals.hard, out, failures), unkept)
	if errors.Is(flushed, journal.ErrReaderGone) || errors.Is(res.Err, journal.ErrReaderGone) {
		j.stderr.mute() // as with any program in a pipe
	}
	shown.Close()
	if j.tune != nil && (res.Err == nil || policyStop(res.Err) != nil) && flushed == nil && signals.code() == 0 {
		return j.tune.report(j, res)
	}
	return j.end(signals, r.Summary(), res, flushed)
}

// close forces what is written to the disk, and then renews failures if it is
// not nil. The runner has tried again for long enough what the disk refuses.
func (j *runJob) close(hard context.Context, out *journal.Journal, failures *failuresFile) error {
	ctx, cancel := context.WithTimeout(hard, j.how.DrainTimeout)
	defer cancel()
	if out.Err() != nil {
		cancel()
	}
	flushed := out.Flush(ctx)
	if flushed == nil && failures != nil {
		flushed = failures.renew(out)
	}
	if err := out.Close(); err != nil {
		return err
	}
	return flushed
}

// quietable is a writer that can be told to write nothing more.
type quietable struct {
	io.Writer
	muted atomic.Bool
}

func (q *quietable) mute() { q.muted.Store(true) }

func (q *quietable) Write(p []byte) (int, error) {
	if q.muted.Load() {
		return len(p), nil
	}
	return q.Writer.Write(p)
}

func (j *runJob) name() string {
	switch len(j.args) {
	case 0:
		return "stdin"
	case 1:
		if j.args[0] == "-" {
			return "stdin"
		}
		return j.args[0]
	}
	return fmt.Sprintf("%d files", len(j.args))
}

// open opens the output.
func (j *runJob) open() (*journal.Journal, error) {
	if j.flags.output == "" {
		return journal.Stream(j.stdout), nil
	}
	m := journal.Manifest{Mete: version(), Fingerprints: j.fingerprints()}
	for _, path := range j.args {
		// A FIFO must be opened once: whoever writes to it loses what it writes
		// after a reader has left.
		if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if in, err := journal.ReadInput(path); err == nil {
			m.Inputs = append(m.Inputs, in)
		}
	}
	out, err := journal.Open(j.flags.output, journal.Options{
		Resume: j.flags.resume, Overwrite: j.flags.overwrite, Fsync: journal.Fsync(j.how.Fsync), Manifest: m, Run: j.id,
	})
	if err == nil {
		return out, nil
	}
	code := exitIO
	if _, ok := errors.AsType[*journal.ExistsError](err); ok {
		code = exitUsage
	}
	if _, ok := errors.AsType[*journal.LockedError](err); ok {
		code = exitLocked
	}
	if _, ok := errors.AsType[*journal.ForeignError](err); ok {
		code = exitLocked
	}
	if _, ok := errors.AsType[*journal.BadLineError](err); ok {
		code = exitLocked
	}
	return nil, &exitError{code, err}
}
