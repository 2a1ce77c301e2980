// Package batch sends streams of work through a gate: a sequence of inputs of
// any length goes in, a sequence of results comes out, and what is in between
// is bounded.
//
//	for r := range batch.Map(ctx, geocoder, addresses, lookup) {
//		if r.Err != nil {
//			log.Printf("item %d: %v", r.Index, r.Err)
//			continue
//		}
//		save(r.In, r.Out)
//	}
//
// # Memory
//
// Memory does not depend on the length of the input. At most the workers plus
// the look-ahead items are read and not yet done with by the loop body; when so
// many are out, the input is not asked for another one until the body returns.
// A slow body therefore slows the calls, and they slow the input.
//
// # Goroutines
//
// The input is iterated by one goroutine, and the calls run in as many as are
// busy at once, at most the workers. They are started with the loop and all have
// ended when the loop has, however it ends. The one exception is an input that
// blocks, as a read from a terminal does: nothing can interrupt it, so the loop
// waits for it for one second and then leaves it to end at its next item.
//
// # Cancellation
//
// When ctx ends, the running calls see it through theirs, no further call is
// started and the input is not read any further. Each item that has been read
// still has exactly one result; the error of those that were not started is
// [ErrNotStarted] and the reason of ctx. After the loop, ctx.Err() says whether
// the input may have been cut short. Leaving the loop by break cancels the
// running calls, waits for them and drops their results.
//
// # Panics
//
// A panic of a call is raised again in the loop as a [*PanicError], in the place
// of the item's result; with [PanicsAsErrors] it is the error of that result. A
// panic of the input is raised after the results of what it had handed over. A
// call that ends its goroutine by [runtime.Goexit] has the error [ErrGoexit].
package batch
