package runner

import (
	"errors"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Lap is what happened between two calls of Runner.Lap.
type Lap struct {
	Duration time.Duration
	// Rows were finished, Failed of them not ok; Throttled is how often
	// providers pushed back.
	Rows, Failed, Throttled int64
	// Semaphore and Limiter are the sums of the rows' waits.
	Semaphore, Limiter time.Duration
	Latency            progress.Quantiles
}

// lap collects a Lap; it is under the tally's mutex.
type lap struct {
	Lap
	begun     time.Time
	throttled int64 // of the run when it began
	latency   *progress.Latency
}

func (l *lap) finished(r *record.Record) {
	if l.latency == nil {
		return // nobody asked
	}
	l.Rows++
	if !r.OK {
		l.Failed++
	}
	l.Semaphore += r.Waits.Semaphore
	l.Limiter += r.Waits.Limiter
	if r.Status > 0 && r.Attempts > 0 {
		l.latency.Record(r.Latency)
	}
}

// Lap ends a lap, begins the next one, and returns the one that has ended.
func (n *Runner) Lap() Lap {
	t := n.run.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	ended := t.lap.Lap
	if t.lap.latency != nil {
		ended.Duration = now.Sub(t.lap.begun)
		ended.Throttled = t.throttled.Load() - t.lap.throttled
		ended.Latency = t.lap.latency.Quantiles()
	}
	t.lap = lap{begun: now, throttled: t.throttled.Load(), latency: &progress.Latency{}}
	return ended
}

// Lapped is how many rows the lap at work has finished.
func (n *Runner) Lapped() int64 {
	t := n.run.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lap.Rows
}

// SetConcurrency changes how many calls each provider may have in flight, at
// most the number with which the run began: that is the size of its pools.
func (n *Runner) SetConcurrency(permits int) error {
	places := n.run.places
	places.mu.Lock()
	places.permits = permits
	places.mu.Unlock()
	var errs []error
	for _, p := range places.all() {
		cfg := p.gate.Config()
		cfg.Concurrency, cfg.Adaptive = permits, nil
		errs = append(errs, p.gate.Update(cfg))
	}
	return errors.Join(errs...)
}
