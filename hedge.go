package mete

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Hedge says when an attempt is started beside one that is slow.
type Hedge struct {
	// After is how long a call may go without a result before another one is
	// started beside it. It should be a high quantile of the usual time.
	After time.Duration
	// Max is how many are started beside the first; 0 means 1.
	Max int
}

// Panic is a panic of a function that ran in another goroutine. It is raised
// again in the caller's.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error gives the value and the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap gives the value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// errGoexit is the error of a function that ended its goroutine.
var errGoexit = errors.New("mete: the function ended its goroutine (runtime.Goexit)")

// answer is what a function gave in another goroutine.
type answer[T any] struct {
	v     T
	err   error
	panic *Panic
}

// capture runs fn and tells how it ended, whichever way that was.
func capture[T any](fn func() (T, error), tell func(answer[T])) {
	a := answer[T]{err: errGoexit}
	defer func() {
		if r := recover(); r != nil {
			a.panic = &Panic{Value: r, Stack: debug.Stack()}
		}
		tell(a)
	}()
	a.v, a.err = fn()
}

// Hedged is Get that starts the call again beside itself each time After passes
// without a result. The first success is returned, and the others are cancelled
// through their context; they end by themselves. Each is a call of its own: it
// is admitted on its own, pays on its own, and is repeated as the gate's Retry
// says. So a hedge that the limits have no room for only queues, and costs
// nothing if it is not needed. fn must be safe to run more than once.
//
// The error is that of the last call to fail, once all have.
func Hedged[T any](ctx context.Context, g *Gate, call Call, h Hedge, fn func(context.Context) (T, error)) (T, error) {
	most := 1 + max(h.Max, 1)
	answers := make(chan answer[T], most)
	var race race
	defer race.end(-1)
	start := func(i int) {
		ctx := race.join(ctx)
		go capture(func() (T, error) {
			return Get(ctx, g, call, func(ctx context.Context) (T, error) {
				v, err := fn(ctx)
				if err == nil {
					// Before the permit is free: no other one is to get it.
					race.end(i)
				}
				return v, err
			})
		}, func(a answer[T]) { answers <- a })
	}
	start(0)
	timer := time.NewTimer(h.After)
	defer timer.Stop()
	for started, ended := 1, 0; ; {
		select {
		case a := <-answers:
			ended++
			if a.panic != nil {
				panic(a.panic)
			}
			if a.err == nil || ended == started || ctx.Err() != nil {
				return a.v, a.err
			}
		case <-timer.C:
			if started < most {
				start(started)
				started++
				timer.Reset(h.After)
			}
		}
	}
}

// race is the contexts of calls that run beside each other.
type race struct {
	mu   sync.Mutex
	ends []context.CancelFunc
	over bool
}

func (r *race) join(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, cancel)
	if r.over {
		cancel()
	}
	return ctx
}

// end cancels all but the winner; -1 spares none.
func (r *race) end(winner int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for i, cancel := range r.ends {
		if i != winner {
			cancel()
		}
	}
}
