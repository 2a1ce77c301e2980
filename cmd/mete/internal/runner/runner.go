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
	"io"
	"sync"
	"sync/atomic"
	"time"

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

// work does one job to its end.
func (r *run) work(_ context.Context, j *job) (struct{}, error) {
	defer j.held.Release()
	var err error
	if j.bad != nil {
		err = r.fail(&record.Record{
			ID: j.bad.ID, NumericID: j.bad.NumericID, Key: sum(j.bad.Key), Line: int64(j.bad.Line), File: j.bad.File, At: time.Now(), Run: r.o.Run,
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
