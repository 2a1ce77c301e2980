package mete

import (
	"context"
	"errors"
)

// Choice is one way to get a result: a function behind the gate of its
// provider.
type Choice[T any] struct {
	Gate *Gate
	Call Call
	Do   func(context.Context) (T, error)
}

// Fallback tries the choices one after the other until one gives a result.
// There is one budget for all: at most attempts attempts together, whatever
// the gates' own Retry would allow (0 leaves it to them), and one deadline,
// that of ctx. A choice that refuses the call (paused, breaker, queue full)
// is left at once; an error marked with Permanent ends them all.
//
// The error joins those of all choices that were tried.
func Fallback[T any](ctx context.Context, attempts int, choices ...Choice[T]) (T, error) {
	var v T
	var errs []error
	left := attempts
	for _, c := range choices {
		if attempts > 0 && left == 0 {
			break
		}
		var used int
		var err error
		v, used, err = get(ctx, c.Gate, &c.Call, left, c.Do)
		left -= used
		if err == nil {
			return v, nil
		}
		errs = append(errs, err)
		if _, final := errors.AsType[*permanent](err); final || ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return v, unmarked(errs[0])
	}
	return v, errors.Join(errs...)
}
