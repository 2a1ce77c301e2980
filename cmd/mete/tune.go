package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/runner"
	"github.com/metehq/mete/cmd/mete/internal/tune"
)

// tuneGroups are the flags of mete tune as --help lists them; the rest of those
// of mete run work too.
var tuneGroups = []flagGroup{
	{"Experiment", []string{"concurrency", "max-concurrency", "json"}},
	{"Input", []string{"input-format", "id", "on-bad-row"}},
	{"Requests", []string{"url", "request", "data", "json-body", "header", "base-url", "config", "provider"}},
	{"Limits", []string{"rate", "limit", "timeout", "retry", "max-requests"}},
	{"Output", []string{"output", "resume", "overwrite", "progress", "quiet", "help"}},
}

func newTuneCommand() *cobra.Command {
	f := &runFlags{}
	t := &tuning{}
	c := &cobra.Command{
		Use:   "tune INPUT -o FILE",
		Short: "Find by experiment how many calls to keep in flight",
		Long: `Find by experiment how many calls a provider can work on at once.

Rows of the input are sent in chunks, with more permits each time, until
throughput stops growing or the limits are reached. From the throughput there
and the latency without a queue follows the knee (Little's law); a chunk at the
knee and one at half of it show whether that is so.

No paid call is thrown away: the rows are real, their records go to -o FILE,
and mete run with the same input, the same -o FILE and --resume does the rest.
The experiment takes a thousand rows or so and ends when it knows; it never
takes more than the input has. Limits hold in it as in mete run.

INPUT and the flags are those of mete run (mete run --help); rows should be of
one provider and alike.`,
		Example: `  # the first rows of a real file find the number for the rest of it
  mete tune urls.txt --rate 500/s -o out.jsonl
  mete run  urls.txt --rate 500/s -o out.jsonl --resume -c 32

  # try it: a provider that slows down beyond 32 calls in flight
  mete stub --listen 127.0.0.1:7070 --latency 50ms --knee 32 &
  seq -f http://127.0.0.1:7070/%g 5000 > urls.txt
  mete tune urls.txt -o out.jsonl`,
		RunE: func(c *cobra.Command, args []string) error { return t.run(c, f, args) },
	}
	f.registerForTune(c)
	s := c.Flags()
	s.IntVar(&t.most, "max-concurrency", 0, "try at most `N` permits (default 512)")
	s.BoolVar(&t.asJSON, "json", false, "print the result as one JSON object")
	c.SetHelpFunc(func(c *cobra.Command, args []string) { tuneHelp(c, asksShort(args), c.OutOrStdout()) })
	return c
}

// registerForTune registers the flags of mete run, but --json, which says here
// how the result is printed: the body template is --json-body.
func (f *runFlags) registerForTune(c *cobra.Command) {
	run := &cobra.Command{}
	f.register(run)
	c.Flags().SortFlags = false
	run.Flags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "json":
			flag.Name = "json-body"
		case "concurrency":
			flag.Usage = "double from `N` on (default: computed from --rate, else 16)"
		case "output":
			flag.Usage = "result `FILE`, as of mete run; it keeps every answer"
		}
		c.Flags().AddFlag(flag)
	})
}

func tuneHelp(c *cobra.Command, short bool, w io.Writer) {
	if short {
		fmt.Fprintf(w, "%s.\n\n  %s\n\n%s\n%s\n\nmete tune --help lists more.\n", c.Short, c.UseLine(), usages(c, tuneGroups[0].flags), c.Example)
		return
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", c.Long, c.UseLine(), c.Example)
	for _, g := range tuneGroups {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, usages(c, g.flags))
	}
}

// tuning is an experiment at work on a run.
type tuning struct {
	most   int
	asJSON bool
	search tune.Search
	ended  bool // it knows, and has stopped the run
}

func (t *tuning) run(c *cobra.Command, f *runFlags, args []string) error {
	switch {
	case f.output == "":
		return errors.New("tune needs -o FILE: the rows are really sent, and their answers are kept there")
	case c.Flags().Changed("max-concurrency") && (t.most < 1 || t.most > 10_000):
		return fmt.Errorf("--max-concurrency %d: want a number from 1 to 10000", t.most)
	case f.cache.dir != "":
		return errors.New("tune measures by sending, and a stored answer is not sent: leave --cache out")
	case f.bounds.dryRun:
		return errors.New("tune measures by sending: mete run -n is the dry run")
	}
	start, auto, err := f.flagConcurrency()
	switch {
	case err != nil:
		return err
	case auto != nil:
		return errors.New("tune finds the number once, -c auto all the time: give one of them")
	}
	t.most = cmp.Or(t.most, 512)
	if start > t.most {
		return fmt.Errorf("-c %d is above --max-concurrency %d", start, t.most)
	}
	f.concurrency = strconv.Itoa(t.most) // the size of pools; the gates get less
	job, err := f.job(c, args)
	if err != nil || job == nil {
		return err
	}
	t.search = tune.Search{Start: start, Max: t.most, Rate: job.options.Pace()}
	job.tune = t
	return job.run()
}

// look is how often it is looked whether a chunk is done.
const look = 10 * time.Millisecond

// drive runs the experiment beside the run, and stops it when all is known.
// The result waits for its end.
func (t *tuning) drive(admit context.Context, stop func(), r *runner.Runner, show *progress.Progress) (wait func()) {
	ended := make(chan struct{})
	permits := t.search.Next()
	err := r.SetConcurrency(permits)
	go func() {
		defer close(ended)
		for err == nil && permits > 0 {
			show.Note(fmt.Sprintf("measuring with %d in flight", permits))
			c, whole := t.chunk(admit, r, permits)
			if !whole {
				return // the input has ended, or somebody stopped the run
			}
			t.search.Add(c)
			if permits = t.search.Next(); permits > 0 {
				err = r.SetConcurrency(permits)
			}
		}
		t.ended = err == nil
		stop()
	}()
	return func() { stop(); <-ended }
}

// chunk measures with the permits that are in force.
func (t *tuning) chunk(admit context.Context, r *runner.Runner, permits int) (tune.Chunk, bool) {
	settle, measure := tune.Rows(permits)
	r.Lap()
	if !lapped(admit, r, settle) {
		return tune.Chunk{}, false
	}
	r.Lap()
	if !lapped(admit, r, measure) {
		return tune.Chunk{}, false
	}
	l := r.Lap()
	c := tune.Chunk{
		Permits: permits, Rows: l.Rows, Failed: l.Failed, Duration: l.Duration, Throttled: l.Throttled,
		Latency: l.Latency.Mean, P50: l.Latency.P50, P95: l.Latency.P95,
		Semaphore: l.Semaphore / time.Duration(l.Rows), Limiter: l.Limiter / time.Duration(l.Rows),
	}
	return c, true
}

// lapped waits until the lap has so many rows.
func lapped(admit context.Context, r *runner.Runner, rows int64) bool {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for r.Lapped() < rows {
		select {
		case <-admit.Done():
			return r.Lapped() >= rows
		case <-tick.C:
		}
	}
	return true
}

// report prints what the experiment showed.
func (t *tuning) report(j *runJob, res runner.Result) error {
	v := t.search.Verdict()
	switch {
	case len(res.Parked) > 0:
		return &exitError{exitProvider, errors.New(strings.Join(res.Parked, "; "))}
	case !t.ended && res.Err == nil:
		v.Evidence = append(v.Evidence, "The input ended before the experiment did: give it more rows to be sure.")
	}
	var err error
	if t.asJSON {
		err = writeTuneJSON(j.stdout, t.search.Chunks(), v)
	} else {
		err = t.writeText(j, v, res.Unfinished > 0 || t.ended)
	}
	if err != nil {
		return &exitError{exitIO, err}
	}
	switch {
	case res.Err != nil: // a bound of the user's
		return &exitError{exitPolicy, res.Err}
	case v.Permits == 0:
		return &exitError{code: exitFailed}
	}
	return nil
}

func (t *tuning) writeText(j *runJob, v tune.Verdict, more bool) error {
	width := 80
	if out, ok := j.stdout.(*os.File); ok && isatty.IsTerminal(out.Fd()) {
		width = j.display.Width()
	}
	var b strings.Builder
	row := func(cells ...string) {
		for i, cell := range cells {
			if width < 78 && (i == 3 || i == 4) {
				continue // the waits: a narrow screen has no room for them
			}
			b.WriteString(runewidth.FillLeft(cell, []int{7, 9, 9, 12, 12, 11, 11, 6}[i]))
		}
		b.WriteString("\n")
	}
	row("permits", "time", "rows/s", "sem wait", "lim wait", "p50", "p95", "429") // mean waits
	for _, c := range t.search.Chunks() {
		row(strconv.Itoa(c.Permits), fmt.Sprintf("%.2f s", c.Duration.Seconds()), fmt.Sprintf("%.1f", c.Throughput()), wait(c.Semaphore), wait(c.Limiter), wait(c.P50), wait(c.P95), strconv.FormatInt(c.Throttled, 10))
	}
	b.WriteString("\n")
	if v.Permits > 0 {
		fmt.Fprintf(&b, "Use -c %d.\n", v.Permits)
	}
	for _, sentence := range v.Evidence {
		b.WriteString(progress.Wrap(sentence, "  ", width) + "\n")
	}
	if more && v.Permits > 0 {
		rest := fmt.Sprintf("The answers are in %s; mete run with --resume -c %d sends the rest.", j.flags.output, v.Permits)
		b.WriteString(progress.Wrap(rest, "  ", width) + "\n")
	}
	_, err := io.WriteString(j.stdout, b.String())
	return err
}

// wait writes a short time in milliseconds.
func wait(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}

func writeTuneJSON(w io.Writer, chunks []tune.Chunk, v tune.Verdict) error {
	type chunk struct {
		Permits     int     `json:"permits"`
		Rows        int64   `json:"rows"`
		Failed      int64   `json:"failed"`
		DurationS   float64 `json:"duration_s"`
		Throughput  float64 `json:"throughput"`
		SemaphoreMS float64 `json:"semaphore_ms"`
		LimiterMS   float64 `json:"limiter_ms"`
		P50MS       float64 `json:"p50_ms"`
		P95MS       float64 `json:"p95_ms"`
		Throttled   int64   `json:"throttled"`
	}
	out := struct {
		Permits  *int     `json:"permits"`
		Knee     *int     `json:"knee"`
		Limited  bool     `json:"limited"`
		Evidence []string `json:"evidence"`
		Chunks   []chunk  `json:"chunks"`
	}{known(v.Permits), known(v.Knee), v.Limited, v.Evidence, []chunk{}}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, c := range chunks {
		out.Chunks = append(out.Chunks, chunk{c.Permits, c.Rows, c.Failed, c.Duration.Seconds(), c.Throughput(), ms(c.Semaphore), ms(c.Limiter), ms(c.P50), ms(c.P95), c.Throttled})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(out)
}
