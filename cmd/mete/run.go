package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/cmd/mete/internal/runner"
	"github.com/metehq/mete/cmd/mete/internal/template"
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
	lean()
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
	if path := j.bounds.failures; path != "" {
		failures, err := openFailures(path, j.flags.resume)
		if err != nil {
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
	flushed := errors.Join(j.close(signals.hard, out), unkept)
	if errors.Is(flushed, journal.ErrReaderGone) || errors.Is(res.Err, journal.ErrReaderGone) {
		j.stderr.mute() // as with any program in a pipe
	}
	shown.Close()
	if j.tune != nil && (res.Err == nil || policyStop(res.Err) != nil) && flushed == nil && signals.code() == 0 {
		return j.tune.report(j, res)
	}
	return j.end(signals, r.Summary(), res, flushed)
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

// close forces what is written to the disk. The runner has tried again for
// long enough what the disk refuses.
func (j *runJob) close(hard context.Context, out *journal.Journal) error {
	ctx, cancel := context.WithTimeout(hard, j.how.DrainTimeout)
	defer cancel()
	if out.Err() != nil {
		cancel()
	}
	flushed := out.Flush(ctx)
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
	if j.scan {
		sum, err := input.Scan(ctx, j.args, j.input)
		if ctx.Err() != nil {
			return &exitError{code: 130}
		}
		if err != nil {
			return inputError(err)
		}
		if _, err := j.checked(&sum); err != nil {
			return err
		}
		return j.dryRun(&sum, true)
	}
	source, err := input.Open(j.args, interruptible(ctx, j.stdin), j.input)
	if err != nil {
		return inputError(err)
	}
	defer source.Close()
	sum, err := source.Sum(ctx)
	if ctx.Err() != nil {
		return &exitError{code: 130}
	}
	if err != nil {
		return inputError(err)
	}
	if _, err := j.checked(&sum); err != nil {
		return err
	}
	return j.dryRun(&sum, false)
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
