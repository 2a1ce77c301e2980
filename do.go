package mete

import (
	"context"
)

// Do calls fn as soon as the gate admits it, and again after a failure as the
// gate's Retry says. It blocks as Acquire does and then for as long as fn
// runs. The context that fn gets ends with the attempt's timeout.
//
// Any error of fn is repeated, save one marked with Permanent, a refusal by
// another gate, and the end of ctx. An error marked with After pauses the
// provider for everybody. The permit is given back however fn ends: by return,
// panic or Goexit; fn may give it back before, when it needs no more of the
// provider: PermitFrom(ctx).Release(). Do returns the last error of fn, or a
// *Rejected.
//
// An attempt that starts at once costs one small allocation, the context that
// fn gets, and some more if there is an attempt timeout and fn asks for
// ctx.Done.
func Do(ctx context.Context, g *Gate, call Call, fn func(context.Context) error) error {
	_, err := do(ctx, g, &call, 0, fn)
	return unmarked(err)
}

// Get is Do for a function with a result. After an error the result is the
// last one that fn returned.
func Get[T any](ctx context.Context, g *Gate, call Call, fn func(context.Context) (T, error)) (T, error) {
	v, _, err := get(ctx, g, &call, 0, fn)
	return v, unmarked(err)
}

// unmarked takes the mark of Permanent off an error.
func unmarked(err error) error {
	if e, ok := err.(*permanent); ok {
		return e.error
	}
	return err
}

// get is do for a function with a result.
func get[T any](ctx context.Context, g *Gate, call *Call, limit int, fn func(context.Context) (T, error)) (v T, attempts int, err error) {
	attempts, err = do(ctx, g, call, limit, func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	})
	return v, attempts, err
}

// do is Do with at most limit attempts, if that is above 0. It tells how many
// there were.
func do(ctx context.Context, g *Gate, call *Call, limit int, fn func(context.Context) error) (attempts int, err error) {
	if d := g.cfg.Load().Total; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	t := Tries{gate: g, ctx: ctx, limit: limit}
	running := false
	defer func() {
		if running { // fn has not returned
			t.permit.Release()
		}
	}()
	for {
		if _, err := t.next(call); err != nil {
			return t.n, err
		}
		running = true
		err = fn(t.attempt)
		running = false
		o := Outcome{Answered: true}
		if err != nil {
			o = outcome(ctx, err)
		}
		if t.ended(call, &o, true) {
			continue
		}
		if t.refusal != nil {
			err = t.refusal
		}
		return t.n, err
	}
}
