package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/semaphore"
)

// Stopped is the error of a run that a bound of its user ended. It can be
// resumed.
type Stopped struct{ Why string }

// Error implements error.
func (s *Stopped) Error() string { return s.Why }

// Halt ends a run when too many rows have failed.
type Halt struct {
	Now   bool    // give up what is in flight, too
	Share float64 // of the rows of this run, once there are 100; 0 is no share
	Count int64   // or this many; 0 is no count
	text  string
}

// least is how many rows a share is taken of.
const least = 100

// ParseHalt reads "soon,fail=3%" or "now,fail=10": when, and at how many
// failed rows (the grammar of GNU parallel's --halt).
func ParseHalt(s string) (*Halt, error) {
	when, rest, _ := strings.Cut(s, ",")
	limit, ok := strings.CutPrefix(rest, "fail=")
	h := &Halt{Now: when == "now", text: s}
	if !ok || (when != "now" && when != "soon") {
		return nil, fmt.Errorf("not a halt: %q: write soon,fail=3%% or now,fail=10", s)
	}
	if share, isShare := strings.CutSuffix(limit, "%"); isShare {
		f, err := strconv.ParseFloat(share, 64)
		if err != nil || !(f > 0 && f <= 100) {
			return nil, fmt.Errorf("not a halt: %q: the share is above 0%% and at most 100%%", s)
		}
		h.Share = f / 100
		return h, nil
	}
	n, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("not a halt: %q: write fail=N or fail=N%%", s)
	}
	h.Count = n
	return h, nil
}

// reached reports whether failed of done rows are too many.
func (h *Halt) reached(failed, done int64) bool {
	if h.Count > 0 {
		return failed >= h.Count
	}
	return done >= least && float64(failed) >= h.Share*float64(done)
}

// policy is what the user bounds a run by.
type policy struct {
	// With --max-requests every request is reserved before it queues, and a row
	// that finds all of them reserved waits: one that is not made comes back.
	requests *semaphore.Semaphore
	open     context.Context // until all are made
	close    context.CancelCauseFunc
	made     atomic.Int64

	costs []*costBound // of --max-cost

	deadline *time.Timer
	failed   atomic.Int64
	done     atomic.Int64
}

func (r *run) startPolicy() {
	if r.o.MaxRequests > 0 {
		r.policy.requests = semaphore.New(r.o.MaxRequests)
		r.policy.open, r.policy.close = context.WithCancelCause(r.places.admit)
	}
	for _, unit := range slices.Sorted(maps.Keys(r.o.MaxCost)) {
		r.policy.costs = append(r.policy.costs, newCostBound(unit, r.o.MaxCost[unit], r.o.Spent[unit]))
	}
	if d := r.o.Deadline; d > 0 {
		r.policy.deadline = time.AfterFunc(d, func() {
			r.fatal(&Stopped{fmt.Sprintf("--deadline %v is over", d)})
		})
	}
}

func (r *run) endPolicy() {
	if r.policy.deadline != nil {
		r.policy.deadline.Stop()
	}
	if r.policy.close != nil {
		r.policy.close(nil)
	}
}

// reserve takes one request out of --max-requests. It reports false, and ends
// the run, when all are made. The permit is given back by a request that was
// not.
func (r *run) reserve() (semaphore.Permit, bool) {
	if r.policy.requests == nil {
		return semaphore.Permit{}, true
	}
	p, err := r.policy.requests.Acquire(r.policy.open, 1)
	if err == nil {
		return p, true
	}
	if s, ok := errors.AsType[*Stopped](context.Cause(r.policy.open)); ok {
		r.fatal(s)
	}
	return p, false
}

// requested counts a request that is made.
func (r *run) requested() {
	if r.policy.requests != nil && r.policy.made.Add(1) == r.o.MaxRequests {
		r.policy.close(&Stopped{fmt.Sprintf("--max-requests %d are made", r.o.MaxRequests)})
	}
}

// judge stops the run if --halt says so.
func (r *run) judge(ok bool) {
	h := r.o.Halt
	if h == nil {
		return
	}
	failed := r.policy.failed.Load()
	if !ok {
		failed = r.policy.failed.Add(1)
	}
	if done := r.policy.done.Add(1); h.reached(failed, done) {
		r.fatal(&Stopped{fmt.Sprintf("--halt %s: %d of %d rows failed", h.text, failed, done)})
		if h.Now {
			r.giveUp()
		}
	}
}
