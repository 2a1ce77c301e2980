package batch

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/metehq/mete"
)

// Collect calls fn for every item as [Map] does and returns all results in the
// order of the input. The first error ends it: the running calls are cancelled
// and waited for, and nothing further is started. It blocks until then and
// holds all results in memory.
func Collect[In, Out any](ctx context.Context, g *mete.Gate, in iter.Seq[In], fn func(context.Context, In) (Out, error), opts ...Option) ([]Out, error) {
	var out []Out
	for r := range Map(ctx, g, in, fn, opts...) {
		if r.Err != nil {
			return nil, r.Err
		}
		out = keep(out, r)
	}
	return out, ctx.Err()
}

// CollectAll is Collect that goes on after errors: it calls fn for every item
// and joins all errors. The result of a failed item is whatever fn returned.
func CollectAll[In, Out any](ctx context.Context, g *mete.Gate, in iter.Seq[In], fn func(context.Context, In) (Out, error), opts ...Option) ([]Out, error) {
	var out []Out
	var errs []error
	for r := range Map(ctx, g, in, fn, opts...) {
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
		out = keep(out, r)
	}
	if err := ctx.Err(); err != nil && len(errs) == 0 {
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// keep puts a result where its item was.
func keep[In, Out any](out []Out, r Result[In, Out]) []Out {
	if n := int(r.Index) + 1; n > len(out) {
		out = slices.Grow(out, n-len(out))[:n]
	}
	out[r.Index] = r.Out
	return out
}
