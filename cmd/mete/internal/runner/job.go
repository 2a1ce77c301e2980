package runner

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/semaphore"
)

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
			if first, repeats := r.rows.original(key, row); !repeats {
				r.rows.finish(first, &record.Record{OK: true, Status: r.journal.Status(sum(row.Key))})
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
		j.first, j.repeats = r.rows.original(j.key, row)
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
