// Package semaphore has the API of golang.org/x/sync/semaphore on top of mete's
// semaphore, as far as the two agree, so that the tests of that package can be
// run against mete. It is no replacement: nothing but those tests uses it.
package semaphore

import (
	"context"
	"slices"
	"sync"

	"github.com/metehq/mete/semaphore"
)

// Weighted counts out permits as x/sync does.
type Weighted struct {
	sem *semaphore.Semaphore

	mu   sync.Mutex
	held []semaphore.Permit
}

// NewWeighted returns a semaphore of n permits.
func NewWeighted(n int64) *Weighted { return &Weighted{sem: semaphore.New(n)} }

// Acquire takes n permits.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	p, err := w.sem.Acquire(ctx, n)
	if err != nil {
		return err
	}
	w.keep(p)
	return nil
}

// TryAcquire takes n permits if they are free.
func (w *Weighted) TryAcquire(n int64) bool {
	p, ok := w.sem.TryAcquire(n)
	if ok {
		w.keep(p)
	}
	return ok
}

func (w *Weighted) keep(p semaphore.Permit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p)
}

// Release returns permits that count for n together: one of that weight, or else
// the latest ones. mete knows who holds what, x/sync counts.
func (w *Weighted) Release(n int64) {
	for _, p := range w.take(n) {
		p.Release()
	}
}

func (w *Weighted) take(n int64) (out []semaphore.Permit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.held {
		if p.Weight() == n {
			w.held = slices.Delete(w.held, i, i+1)
			return []semaphore.Permit{p}
		}
	}
	for i := len(w.held) - 1; i >= 0 && n > 0; i-- {
		if p := w.held[i]; p.Weight() <= n {
			w.held = slices.Delete(w.held, i, i+1)
			out, n = append(out, p), n-p.Weight()
		}
	}
	return out
}
