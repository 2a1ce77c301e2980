package rate

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInvalid: fewer than 1 unit was asked for, or a limit makes no sense.
	ErrInvalid = errors.New("rate: invalid")
	// ErrTooLarge: more was asked for than the limit ever admits at once, so
	// waiting would not help.
	ErrTooLarge = errors.New("rate: more than the limit")
	// ErrNever: the limit is 0 and admits nothing until it is raised.
	ErrNever = errors.New("rate: the limit is 0")
	// ErrDeadline: the wait would not have ended before the context's
	// deadline. It is told at once, and is no context error: the context is
	// still alive, and may be of use for something else.
	ErrDeadline = errors.New("rate: the wait would pass the deadline")
)

// Refusal is the error of a call that the limiter itself refused. errors.Is
// finds its Reason in it. Nothing was charged.
type Refusal struct {
	Reason     error         // ErrTooLarge, ErrNever or ErrDeadline
	N          int64         // units asked for
	Capacity   int64         // the most that can be asked for
	RetryAfter time.Duration // how long it would have waited at least; 0 is unknown
	Waiting    int           // callers in line
}

// Error implements error.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("%v: asked for %d of at most %d", r.Reason, r.N, r.Capacity)
	if r.Waiting > 0 {
		s += fmt.Sprintf(", waiting %d", r.Waiting)
	}
	if r.RetryAfter > 0 {
		s += fmt.Sprintf(", retry after %v", r.RetryAfter)
	}
	return s
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

func invalid(n int64) error { return fmt.Errorf("%w: asked for %d units", ErrInvalid, n) }

// impossible is why n units are never admitted, or nil. The caller holds mu.
func (l *Limiter) impossible(n int64) error {
	switch c := l.meter.Capacity(); {
	case n <= c:
		return nil
	case c == 0:
		return l.refusal(ErrNever, n, 0)
	default:
		return l.refusal(ErrTooLarge, n, 0)
	}
}

func (l *Limiter) refusal(reason error, n int64, after time.Duration) error {
	return &Refusal{Reason: reason, N: n, Capacity: l.meter.Capacity(), RetryAfter: after, Waiting: l.line.n}
}
