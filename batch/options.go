package batch

import (
	"runtime"

	"github.com/metehq/mete"
)

// Option changes how a stream runs.
type Option func(*options)

type options struct {
	workers        int
	lookAhead      int
	window         int
	ordered        bool
	panicsAsErrors bool
	call           mete.Call
	ungated        bool
}

// Workers sets how many calls run at once, for each gate; the gate still admits
// each of them. Without it, and for n < 1, it is the concurrency of the gate, or
// GOMAXPROCS where there is no gate or the gate does not limit it.
func Workers(n int) Option { return func(o *options) { o.workers = n } }

// LookAhead sets how many items may be read beyond those that run: they wait for
// their turn, or their results wait for the loop. 0 reads an item only when a
// worker is free for it. The default, and what n < 0 means, is 4 for each worker
// and at least 256.
func LookAhead(n int) Option { return func(o *options) { o.lookAhead = n } }

// Ordered gives the results in the order of the input. At most window items are
// out at once: that is how far the input is read past the oldest unfinished item
// and how many results are kept waiting for it, so one slow item stops the others
// only after that many. A window below the number of workers leaves some of them
// idle. LookAhead has no effect then, unless window < 1, which means the workers
// and the look-ahead together.
func Ordered(window int) Option {
	return func(o *options) { o.ordered, o.window = true, window }
}

// PanicsAsErrors makes a panic of a call the error of its result, a *PanicError,
// instead of raising it in the loop. The other items go on.
func PanicsAsErrors() Option { return func(o *options) { o.panicsAsErrors = true } }

// Call sets what each call asks its gate for, such as a lane of its own for the
// stream. If that differs from item to item, give Map no gate and let the
// function call mete.Get itself.
func Call(call mete.Call) Option { return func(o *options) { o.call = call } }

func newOptions(opts []Option) options {
	o := options{lookAhead: -1}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// workersOf is the number of workers where the gate, if any, has limit permits.
func (o *options) workersOf(limit int) int {
	switch {
	case o.workers > 0:
		return o.workers
	case limit > 0:
		return limit
	}
	return runtime.GOMAXPROCS(0)
}

// bound is how many items may be out at once with so many workers.
func (o *options) bound(workers int) int {
	if o.ordered && o.window > 0 {
		return o.window
	}
	ahead := o.lookAhead
	if ahead < 0 {
		ahead = max(4*workers, 256)
	}
	return workers + ahead
}

// Ungated leaves the admission to fn, which asks the gate itself: through an
// http.Client of package metehttp, or by mete.Do. The gate then only says how
// many workers there are. Without it such a call would be a nested use of one
// gate, which is refused.
func Ungated() Option { return func(o *options) { o.ungated = true } }
