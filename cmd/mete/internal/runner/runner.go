// Package runner sends the rows of an input through the gates of their
// providers and writes a record for each.
//
// One goroutine reads rows. Each provider has its own queue and workers, so
// that one which is paused holds nobody else up. A row is sent, read to the end
// and written to the journal before its permit is free for the next one.
package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/semaphore"
)

// Options say what to run.
type Options struct {
	Run     string // id of this run
	Journal *journal.Journal
	Source  *input.Source
	Files   int   // how many inputs there are
	Total   int64 // rows of the input, -1 if not known

	Providers map[string]*Spec
	Provider  string // the usual one; empty is none
	Other     Spec   // for places that rows name themselves
	// Fallback are the providers to ask in place of any other, in order,
	// whatever the providers' own say.
	Fallback []string

	Headers           []config.Header
	UserAgent         string
	IdempotencyHeader string // empty sends none
	Idempotent        bool   // any request may be repeated
	OnBadRow          string // "fail" stops, "emit" writes a record for it, "skip" does not
	OnChange          string // of a row since an earlier run: "fail", "rerun" or "keep"
	Bodies            Bodies
	Dedup             Dedup
	RetryFailed       bool  // send rows again whose last record is not ok
	MaxRequests       int64 // attempts; 0 is no bound
	// MaxCost ends the run before more is spent of a unit, and Spent is what
	// earlier runs of the same output have.
	MaxCost, Spent map[string]int64
	Deadline       time.Duration // of admission; 0 is none
	Halt           *Halt
	// Cache keeps answers and gives those that it has; nil is none. With
	// CacheOnly nothing is sent.
	Cache     *cache.Cache
	CacheOnly bool
	// Value picks a value out of a JSON body for the record; nil does not.
	Value func(body []byte) ([]byte, error)
	// Failures gets a copy of the records that are not ok; nil gets none.
	Failures io.Writer
	TLS      *tls.Config
	Grace    time.Duration // for what is in flight when it is to stop

	// Render turns a record into what is written: a line of JSON, or for a
	// person. Nil is JSON.
	Render func(dst []byte, r *record.Record) []byte
	// Mask hides secrets in a text.
	Mask func(string) string
	// Note tells the user something while it runs.
	Note func(string)
}

// Result is how a run ended.
type Result struct {
	// Unfinished rows have no record; a resume sends them.
	Unfinished int64
	// Skipped rows were done by an earlier run; Changed ones differ from it
	// and were sent again.
	Skipped, Changed int64
	// Bad rows were left out.
	Bad int64
	// Parked says why providers could not be used to the end, Spent which
	// budgets did not last.
	Parked, Spent []string
	// Unrecorded is what was paid, by unit, for rows without a record.
	Unrecorded map[string]int64
	// Err is what stopped the run: the input or the output.
	Err error
}

// window is how much memory rows that are read ahead may hold.
const window = 64 << 20

// run is a run at work.
type run struct {
	o       *Options
	journal *journal.Journal
	places  *places
	tally   *Tally
	files   int
	salt    string
	hard    context.Context // ends what is in flight
	flush   context.Context // ends the waiting for the disk
	stop    context.CancelCauseFunc
	buffers sync.Pool
	memory  *semaphore.Semaphore
	large   sync.Mutex // a value is picked out of one body file at a time
	policy  policy
	giveUp  context.CancelFunc // of what is in flight
	rows    originals

	cacheFull sync.Once

	inFlight   atomic.Int64
	unfinished atomic.Int64
	skipped    atomic.Int64
	changed    atomic.Int64
	mu         sync.Mutex
	parked     []string
	// spentBudgets are the reasons of providers given up for a budget.
	spentBudgets []string
	unrecorded   map[string]int64
	failure      error
}

// Runner is a run that can be looked at while it works.
type Runner struct{ run run }

// New prepares a run: it opens the gates of the configured providers. The
// error is a mistake in their limits, or a state folder that cannot be used.
func New(admit context.Context, o Options) (*Runner, error) {
	if o.Mask == nil {
		o.Mask = func(s string) string { return s }
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Render == nil {
		o.Render = record.AppendJSON
	}
	n := &Runner{}
	r := &n.run
	r.o, r.journal, r.files = &o, o.Journal, o.Files
	if r.salt = o.Journal.Manifest().Salt; r.salt == "" {
		r.salt = o.Run // no output to resume: never the keys of another run
	}
	r.tally = newTally()
	r.buffers.New = func() any { return new(bytes.Buffer) }
	r.memory = semaphore.New(window)
	admit, r.stop = context.WithCancelCause(admit)
	places, err := newPlaces(admit, &o, o.Note)
	if err != nil {
		return nil, err
	}
	r.places = places
	return n, nil
}

// Run sends all rows. It returns when every row has its record, or after admit
// (given to New) has ended and what was in flight is finished; when hard ends,
// what is in flight is given up.
func (n *Runner) Run(hard context.Context) Result {
	r := &n.run
	var cancel context.CancelFunc
	r.hard, cancel = context.WithCancel(hard)
	r.flush = r.hard
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	r.giveUp = cancel
	r.startPolicy()
	defer r.endPolicy()
	watch.Go(func() { r.watchAdmission(cancel) })
	watch.Go(func() { r.watchJournal(cancel) })

	workers := 4 * max(r.o.Other.Gate.MaxConcurrency(), 1)
	for _, s := range r.o.Providers {
		workers = max(workers, 4*s.Gate.MaxConcurrency())
	}
	results := batch.MapBy(r.places.admit, (*job).gate, r.jobs(), r.work, batch.Ungated(), batch.Workers(workers))
	for res := range results {
		if errors.Is(res.Err, batch.ErrNotStarted) {
			r.unfinished.Add(1)
			r.share(res.In, nil, errUnfinished)
			res.In.held.Release()
		}
	}
	err := r.places.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
	return Result{
		Unfinished: r.unfinished.Load(), Skipped: r.skipped.Load(), Changed: r.changed.Load(), Bad: r.tally.bad.Load(),
		Parked: r.parked, Spent: r.spentBudgets, Unrecorded: r.unrecorded, Err: r.failure,
	}
}

// watchAdmission lets what is in flight finish once nothing more is admitted,
// but not for longer than the grace.
func (r *run) watchAdmission(cancel context.CancelFunc) {
	select {
	case <-r.places.admit.Done():
	case <-r.hard.Done():
		return
	}
	timer := time.NewTimer(r.o.Grace)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-r.hard.Done():
	}
}

// watchJournal stops the admission when the output fails. Answers that are
// paid for are kept, and written if the disk takes them within the grace; if
// the reader has gone there is nobody to keep them for.
func (r *run) watchJournal(cancel context.CancelFunc) {
	select {
	case <-r.journal.Trouble():
	case <-r.hard.Done():
		return
	}
	err := r.journal.Err()
	r.fatal(err)
	if errors.Is(err, journal.ErrReaderGone) {
		cancel()
		return
	}
	ctx, done := context.WithTimeout(r.hard, r.o.Grace)
	defer done()
	for ctx.Err() == nil {
		// What comes in meanwhile is tried again too.
		if r.journal.Flush(ctx) != nil {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	cancel()
}

// job is a row on its way, or a bad one.
type job struct {
	row      *input.Row
	bad      *input.RowError
	provider *provider
	held     semaphore.Permit
	// With Dedup: the row's original, and whether the row repeats it.
	key     uint64
	first   *original
	repeats bool
}

func (j *job) gate() *mete.Gate {
	if j.provider == nil {
		return nil
	}
	return j.provider.gate
}

// jobs reads the input and leaves out what is done.
func (r *run) jobs() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for row, err := range r.o.Source.Rows() {
			j, ok := r.job(row, err)
			if !ok {
				return
			}
			if j != nil && !yield(j) {
				return
			}
		}
	}
}

// job makes the job of what the input gave; nil if there is nothing to do for
// it. It reports whether to read on.
func (r *run) job(row *input.Row, err error) (*job, bool) {
	if bad, ok := err.(*input.RowError); ok {
		switch {
		case r.o.OnBadRow == "fail":
			r.fatal(bad)
			return nil, false
		case r.o.OnBadRow != "emit":
			r.tally.bad.Add(1)
			r.o.Note(r.o.Mask(bad.Error()))
			return nil, true
		case r.done(sum(bad.Key), 0):
			return nil, true
		}
		return &job{bad: bad}, true
	}
	if err != nil {
		if !errors.Is(err, os.ErrClosed) {
			r.fatal(err)
		}
		return nil, false
	}
	if r.o.OnChange == "fail" && Changed(r.journal, row) {
		r.fatal(ChangedError(row))
		return nil, false
	}
	if r.done(sum(row.Key), sum(row.Hash)) {
		// A row that failed then, or was another one, has no answer to share.
		if key := r.dedupKey(row); key != 0 && r.journal.Done(sum(row.Key), sum(row.Hash)) == journal.Done {
			if first, repeats := r.rows.original(key, row.ID); !repeats {
				r.rows.finish(first, &record.Record{OK: true})
			}
		}
		return nil, true
	}
	p, err := r.places.of(row)
	if err != nil {
		r.fatal(err)
		return nil, false
	}
	j := &job{row: row, provider: p}
	if j.key = r.dedupKey(row); j.key != 0 {
		j.first, j.repeats = r.rows.original(j.key, row.ID)
	}
	// One row may be larger than the window: then it goes alone.
	j.held, err = r.memory.Acquire(r.places.admit, min(max(int64(row.Size), 1), window))
	if err != nil {
		r.unfinished.Add(1)
		return nil, false
	}
	if j.repeats && r.rows.wait(j.first, j) {
		return nil, true
	}
	return j, true
}

// ChangedRow is the error of a row that is not what was sent for it.
type ChangedRow struct{ where string }

func (e *ChangedRow) Error() string {
	return e.where + " has changed since it was sent: \"run: {on_change: rerun}\" in the file of -f sends it again, keep keeps the old answer"
}

// ChangedError says that row has changed.
func ChangedError(row *input.Row) error {
	return &ChangedRow{fmt.Sprintf("%s:%d:1: row %q", row.File, row.Line, row.ID)}
}

// Changed reports whether the output holds an answer to row as it was, but not
// as it is.
func Changed(out *journal.Journal, row *input.Row) bool {
	return out.Done(sum(row.Key), sum(row.Hash)) == journal.Changed
}

// done reports whether an earlier run has finished the row.
func (r *run) done(key, hash uint64) bool {
	switch r.journal.Done(key, hash) {
	case journal.Done:
		r.tally.resumed(true)
	case journal.Failed:
		if r.o.RetryFailed {
			return false
		}
		r.tally.resumed(false)
	case journal.Changed:
		r.changed.Add(1)
		if r.o.OnChange == "keep" {
			r.tally.resumed(true)
			break
		}
		return false
	default:
		return false
	}
	r.skipped.Add(1)
	return true
}

// work does one job to its end.
func (r *run) work(_ context.Context, j *job) (struct{}, error) {
	defer j.held.Release()
	var err error
	if j.bad != nil {
		err = r.fail(&record.Record{
			ID: j.bad.ID, Key: sum(j.bad.Key), Line: int64(j.bad.Line), File: j.bad.File, At: time.Now(), Run: r.o.Run,
		}, record.InvalidRow, "input", j.bad.Error())
	} else if j.repeats {
		err = r.repeat(j.row, j.provider, j.first)
	} else {
		var rec *record.Record
		rec, err = r.do(j.row, j.provider)
		r.share(j, rec, err)
	}
	r.ended(err)
	return struct{}{}, nil
}

// ended books how a row ended.
func (r *run) ended(err error) {
	if err == nil {
		return
	}
	r.unfinished.Add(1)
	if !errors.Is(err, errUnfinished) {
		r.fatal(err)
	}
}

// share gives what a row got to the rows that wait for it.
func (r *run) share(j *job, rec *record.Record, err error) {
	if j.key == 0 {
		return
	}
	if err != nil {
		for _, w := range r.rows.abandon(j.key, j.first) {
			w.held.Release()
			r.ended(errUnfinished)
		}
		return
	}
	for _, w := range r.rows.finish(j.first, rec) {
		r.ended(r.repeat(w.row, w.provider, j.first))
		w.held.Release()
	}
}

// fatal stops the run: nothing more starts.
func (r *run) fatal(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
	}
	r.mu.Unlock()
	r.stop(err)
}

// parkProvider gives a provider up for this run; the others go on.
func (r *run) parkProvider(p *provider, why string) { r.giveUpOn(p, why, &r.parked) }

// giveUpOn is parkProvider that adds the reason to a list.
func (r *run) giveUpOn(p *provider, why string, list *[]string) {
	r.mu.Lock()
	known := p.isParked
	p.isParked = true
	if !known {
		*list = append(*list, why)
	}
	r.mu.Unlock()
	if !known {
		p.park(errParked)
		r.o.Note(why)
	}
}
