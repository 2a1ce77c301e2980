package batch

import (
	"context"
	"errors"
	"fmt"
)

// Result is what became of one item.
type Result[In, Out any] struct {
	In  In
	Out Out
	// Err is the error of the call, or says why there was none.
	Err error
	// Index is the place of the item in the input, from 0.
	Index int64
}

var (
	// ErrNotStarted is in the error of an item that was read, but whose call
	// was not started because the context had ended. Nothing was sent for it.
	ErrNotStarted = errors.New("not started")
	// ErrGoexit is the error of an item whose call ended its goroutine with
	// runtime.Goexit, as testing's FailNow does.
	ErrGoexit = errors.New("the call ended its goroutine (runtime.Goexit)")
)

// PanicError is a panic that was caught in another goroutine.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// Error gives the value and the stack, so that a program that dies of it shows
// where it came from.
func (p *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// unstarted is the error of the items that the end of ctx kept from starting.
type unstarted struct{ err, cause error }

func notStarted(ctx context.Context) error {
	return &unstarted{ctx.Err(), context.Cause(ctx)}
}

func (u *unstarted) Error() string   { return ErrNotStarted.Error() + ": " + u.cause.Error() }
func (u *unstarted) Unwrap() []error { return []error{ErrNotStarted, u.err, u.cause} }

// Sent is what mete.Sent reports.
func (u *unstarted) Sent() bool { return false }
