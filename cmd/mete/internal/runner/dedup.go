package runner

import (
	"sync"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Dedup says which rows share one request.
type Dedup string

// The choices of Dedup.
const (
	DedupNone    Dedup = "none"
	DedupRequest Dedup = "request" // the same method, URL, body and headers
	DedupKey     Dedup = "key"     // the same dedup_key
)

// originals are the first rows of each request. It holds about 150 bytes for
// each of them until the end of the run.
type originals struct {
	mu   sync.Mutex
	seen map[uint64]*original
}

// original is a row that others may repeat.
type original struct {
	id      string
	numeric bool // the id
	done    bool
	ok      bool
	status  int
	failure *record.Error
	// who answered it
	provider string
	fallback int
	waiting  []*job // that came before it was done
}

// dedupKey is what rows that share a request have in common; 0 is nothing.
func (r *run) dedupKey(row *input.Row) uint64 {
	switch r.o.Dedup {
	case DedupRequest:
		return sum(row.Hash)
	case DedupKey:
		if row.DedupKey != "" {
			return record.Sum(row.DedupKey)
		}
	}
	return 0
}

// original returns the original of a row, and whether the row repeats it.
func (o *originals) original(key uint64, row *input.Row) (first *original, repeats bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first = o.seen[key]; first != nil {
		return first, true
	}
	if o.seen == nil {
		o.seen = map[uint64]*original{}
	}
	first = &original{id: row.ID, numeric: row.NumericID}
	o.seen[key] = first
	return first, false
}

// wait leaves a row to its original, unless that is done.
func (o *originals) wait(first *original, j *job) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first.done {
		return false
	}
	first.waiting = append(first.waiting, j)
	return true
}

// finish tells the outcome of an original and returns the rows that waited.
func (o *originals) finish(first *original, rec *record.Record) []*job {
	o.mu.Lock()
	defer o.mu.Unlock()
	first.done, first.ok, first.status, first.failure = true, rec.OK, rec.Status, rec.Error
	first.provider, first.fallback = rec.Provider, rec.Fallback
	waiting := first.waiting
	first.waiting = nil
	return waiting
}

// abandon forgets an original that was not finished, and returns the rows that
// waited for it.
func (o *originals) abandon(key uint64, first *original) []*job {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
	waiting := first.waiting
	first.waiting = nil
	return waiting
}

// repeat writes the record of a row that shares the request of first.
func (r *run) repeat(row *input.Row, p *provider, first *original) error {
	now := time.Now()
	rec := &record.Record{
		ID: row.ID, NumericID: row.NumericID, Key: sum(row.Key), Hash: sum(row.Hash), Line: int64(row.Line),
		Provider: p.name, Method: row.Method, URL: r.shown(row.URL), Status: first.status,
		OK: first.ok, DupOf: first.id, NumericDupOf: first.numeric, Error: first.failure, At: now, End: now, Run: r.o.Run, Meta: row.Meta,
	}
	if first.provider != "" {
		rec.Provider, rec.Fallback = first.provider, first.fallback
	}
	if r.files > 1 {
		rec.File = row.File
	}
	r.tally.duplicate()
	return r.write(rec, nil)
}
