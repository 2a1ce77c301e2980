package batch

import (
	"context"
	"iter"

	"github.com/metehq/mete"
)

// Map calls fn for every item of in, each admitted by the gate as by [mete.Get],
// with its retries, and gives the results in the order in which they come. Each
// loop over the sequence runs the calls anew, and nothing runs before it.
//
// A nil gate admits everything; then the workers are the only bound. Such an
// item costs about 0.1 us and no allocation. A gate with a MaxQueue refuses
// calls that find its queue full, so there Workers must not be far above its
// concurrency. Its MaxWait does not count: an item waits as long as it takes.
func Map[In, Out any](ctx context.Context, g *mete.Gate, in iter.Seq[In], fn func(context.Context, In) (Out, error), opts ...Option) iter.Seq[Result[In, Out]] {
	return MapBy(ctx, func(In) *mete.Gate { return g }, in, fn, opts...)
}

// MapBy is Map over several gates: gate names that of an item, such as the one of
// its host in a [mete.Set], and nil where nothing limits it. It is called by the
// goroutine that iterates in.
//
// Each gate has its own queue and its own workers, so the items of one that is
// paused or slow hold no workers of the others. They do take up the look-ahead,
// which is one for all gates and is reckoned with the workers of the largest:
// when it holds nothing but items of stopped gates, nothing more is read.
func MapBy[In, Out any](ctx context.Context, gate func(In) *mete.Gate, in iter.Seq[In], fn func(context.Context, In) (Out, error), opts ...Option) iter.Seq[Result[In, Out]] {
	o := newOptions(opts)
	o.call.Patient = true // waiting is what a stream is for
	j := job[*mete.Gate, In, Out]{
		options: o,
		key:     gate,
		limit: func(g *mete.Gate) int {
			if g == nil {
				return 0
			}
			return g.Stats().Concurrency
		},
		call: func(ctx context.Context, g *mete.Gate, item In) (Out, error) {
			if g == nil || o.ungated {
				return fn(ctx, item)
			}
			return mete.Get(ctx, g, o.call, func(ctx context.Context) (Out, error) { return fn(ctx, item) })
		},
	}
	return func(yield func(Result[In, Out]) bool) { j.run(ctx, in, yield) }
}
