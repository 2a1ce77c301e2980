package mete

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// At is what a call asks of one of several gates.
type At struct {
	Gate *Gate
	Call Call
}

// Permits are what a call holds that several gates admitted together.
type Permits []*Permit

// Release gives all permits back, each once, as Permit.Release does.
func (ps Permits) Release() {
	for _, p := range ps {
		p.Release()
	}
}

// Cancel gives all permits back and everything that was paid for them.
func (ps Permits) Cancel() {
	for _, p := range ps {
		p.Cancel()
	}
}

// Sent stamps the start at all gates.
func (ps Permits) Sent() {
	for _, p := range ps {
		p.Sent()
	}
}

// AcquireAll admits a call at several gates, such as one for all calls, one for
// the host and one for the tenant: by all of them or by none. It waits at one
// gate at a time and holds nothing of the others meanwhile, so that it can
// neither deadlock nor keep a permit idle. It keeps its place by its age: at
// no gate does it wait behind a call that came later.
//
// It blocks as Gate.Acquire does, with the MaxWait of the gate it waits at. On
// an error nothing is held and nothing was paid. Naming one gate twice is an
// ErrNested.
func AcquireAll(ctx context.Context, at ...At) (Permits, error) {
	for i, a := range at {
		for _, b := range at[:i] {
			if a.Gate == b.Gate {
				return nil, fmt.Errorf("%w (gate %s, named twice)", ErrNested, a.Gate.name)
			}
		}
		if _, nested := ctx.Value(held{a.Gate}).(*Permit); nested {
			return nil, fmt.Errorf("%w (gate %s)", ErrNested, a.Gate.name)
		}
	}
	born := time.Now()
	permits := make(Permits, len(at))
	for wait := -1; ; {
		if wait >= 0 {
			t := Tries{gate: at[wait].Gate, born: max(born.Sub(at[wait].Gate.base), 0)}
			p := &Permit{gate: t.gate}
			if err := t.gate.admit(ctx, &at[wait].Call, p, &t); err != nil {
				if r, ok := errors.AsType[*Rejected](err); ok {
					r.Waited = time.Since(born)
				}
				return nil, err
			}
			permits[wait] = p
		}
		blocked := -1
		for i, a := range at {
			if i == wait {
				continue
			}
			p, ok := a.Gate.try(a.Call, max(born.Sub(a.Gate.base), 0))
			if !ok {
				blocked = i
				break
			}
			permits[i] = p
		}
		if blocked < 0 {
			told := 0
			defer func() {
				if told < len(permits) { // an Observer panics, and has cost its own
					permits[told+1:].Cancel()
					permits[:told].Cancel()
				}
			}()
			for i, p := range permits {
				at[i].Gate.admitted(p, 1)
				told++
			}
			return permits, nil
		}
		permits.Cancel()
		clear(permits)
		wait = blocked
	}
}
