package mete

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason says why a call was refused. The list is closed.
type Reason string

// The reasons. Each has a sentinel error of the same name.
const (
	TooLarge    Reason = "too_large"    // the call asks for more than there can ever be
	WaitTimeout Reason = "wait_timeout" // not admitted within MaxWait
	Deadline    Reason = "deadline"     // cannot be admitted before the caller's deadline
	QueueFull   Reason = "queue_full"   // MaxQueue calls wait already
	Never       Reason = "never"        // a limit of zero
	Paused      Reason = "paused"       // the provider asked to stay away for longer than MaxWait
	Breaker     Reason = "breaker"      // the circuit breaker is open
	Budget      Reason = "budget"       // the retry budget or a spend budget is used up
	Exhausted   Reason = "exhausted"    // the provider says that a quota is used up for long
	Draining    Reason = "draining"     // the gate is closed
	Store       Reason = "store"        // the shared store cannot be reached
	Canceled    Reason = "canceled"     // the caller's context ended while it waited
)

// Sentinels for errors.Is; every refusal is a *Rejected that wraps one of them.
var (
	ErrTooLarge    = reasonError(TooLarge)
	ErrWaitTimeout = reasonError(WaitTimeout)
	ErrDeadline    = reasonError(Deadline)
	ErrQueueFull   = reasonError(QueueFull)
	ErrNever       = reasonError(Never)
	ErrPaused      = reasonError(Paused)
	ErrBreaker     = reasonError(Breaker)
	ErrBudget      = reasonError(Budget)
	ErrExhausted   = reasonError(Exhausted)
	ErrDraining    = reasonError(Draining)
	ErrStore       = reasonError(Store)
	ErrCanceled    = reasonError(Canceled)
)

// ErrNested is returned to a call whose context carries a permit of the same
// gate. It would wait for a permit that it holds itself: release before
// fanning out, or give the inner calls a gate of their own.
var ErrNested = errors.New("mete: nested use of one gate: the context carries a permit of it")

// ErrInvalidCall is returned for a negative weight or cost.
var ErrInvalidCall = errors.New("mete: invalid call")

type reasonError Reason

func (r reasonError) Error() string {
	return "mete: " + strings.ReplaceAll(string(r), "_", " ")
}

// Rejected is the error of a call that was refused: it was not admitted, or
// not admitted again. Nothing was charged for the refusal.
type Rejected struct {
	Gate   string
	Reason Reason
	// Bound is what the call waited for, or would have waited for.
	Bound string
	// Waited is how long it queued, RetryAfter when to come back (0: unknown).
	Waited, RetryAfter time.Duration
	// Attempts is how many attempts were made before.
	Attempts int
	// Concurrency, InUse and Waiting are the gate's figures at the refusal;
	// a Concurrency of 0 is no bound.
	Concurrency, InUse, Waiting int
	// Last is the error of the last attempt, or the context's error.
	Last error
}

// Error implements error.
func (r *Rejected) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mete: %s: %s", r.Gate, strings.ReplaceAll(string(r.Reason), "_", " "))
	if r.Bound != "" {
		fmt.Fprintf(&b, " (bound: %s)", r.Bound)
	}
	if r.Waited > 0 {
		fmt.Fprintf(&b, " after waiting %v", r.Waited.Round(time.Microsecond))
	}
	if r.Concurrency > 0 {
		fmt.Fprintf(&b, ", in use %d of %d", r.InUse, r.Concurrency)
	}
	if r.Waiting > 0 {
		fmt.Fprintf(&b, ", waiting %d", r.Waiting)
	}
	if r.RetryAfter > 0 {
		fmt.Fprintf(&b, ", retry after %v", r.RetryAfter.Round(time.Millisecond))
	}
	if r.Attempts > 0 {
		fmt.Fprintf(&b, ", attempts %d", r.Attempts)
	}
	if r.Last != nil {
		fmt.Fprintf(&b, ": %v", r.Last)
	}
	return b.String()
}

// Unwrap gives the sentinel of the reason and the last error.
func (r *Rejected) Unwrap() []error {
	if r.Last == nil {
		return []error{reasonError(r.Reason)}
	}
	return []error{reasonError(r.Reason), r.Last}
}

// Sent reports whether anything of the last attempt of the failed call may
// have reached the provider. Where it is false, the call can be repeated
// whatever it does.
func (r *Rejected) Sent() bool { return r.Last != nil && r.Attempts > 0 && Sent(r.Last) }

// Sent reports whether a call that ended with err may have reached the
// provider. It is true unless err says otherwise: a *Rejected before any
// attempt, or an error in the chain with a method Sent() bool.
func Sent(err error) bool {
	if err == nil {
		return true
	}
	if e, ok := errors.AsType[interface {
		error
		Sent() bool
	}](err); ok {
		return e.Sent()
	}
	return !errors.Is(err, ErrNested) && !errors.Is(err, ErrInvalidCall)
}

// Permanent marks err as one that no repetition can mend: Do and Get return it
// at once. A nil err stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// After marks err as a throttle: the provider asks not to be called for d.
// The gate pauses for everybody, and Do and Get repeat the call afterwards if
// attempts are left. A d of 0 or less is a throttle without a hint.
func After(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &Throttled{Err: err, RetryAfter: max(d, 0)}
}

// Throttled is an error with which a provider pushed back.
type Throttled struct {
	Err        error
	RetryAfter time.Duration // 0 is no hint
	// Terminal says that the quota is used up for long: the gate refuses all
	// calls with ErrExhausted, for RetryAfter and at least an hour, until
	// Gate.Reopen.
	Terminal bool
}

// Error implements error.
func (t *Throttled) Error() string {
	if t.RetryAfter == 0 {
		return t.Err.Error()
	}
	return fmt.Sprintf("%v (retry after %v)", t.Err, t.RetryAfter)
}

// Unwrap gives the error that was marked.
func (t *Throttled) Unwrap() error { return t.Err }
