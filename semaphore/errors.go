package semaphore

import (
	"errors"
	"fmt"
)

var (
	// ErrWeight: permits were asked for in a number below 1.
	ErrWeight = errors.New("semaphore: the weight must be at least 1")
	// ErrTooLarge: more permits were asked for than there are, so waiting
	// would not help.
	ErrTooLarge = errors.New("semaphore: more than the limit")
	// ErrWaitTimeout: the permits did not become free within the wait that
	// was allowed.
	ErrWaitTimeout = errors.New("semaphore: no permit in time")
)

// Refusal is the error of an acquire that the semaphore itself refused, with
// how things stood. errors.Is finds ErrTooLarge or ErrWaitTimeout in it.
type Refusal struct {
	Reason  error // ErrTooLarge or ErrWaitTimeout
	Weight  int64 // permits asked for
	Limit   int64
	InUse   int64
	Waiting int // callers in line, the refused one included if it was in line
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%v: asked for %d (limit %d, in use %d, waiting %d)",
		r.Reason, r.Weight, r.Limit, r.InUse, r.Waiting)
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

// refusal describes the present state. mu is held.
func (s *Semaphore) refusal(reason error, n int64) error {
	return &Refusal{Reason: reason, Weight: n, Limit: s.limit, InUse: s.inUse(), Waiting: s.line.n}
}
