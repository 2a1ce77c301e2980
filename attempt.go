package mete

import (
	"context"
	"sync/atomic"
	"time"
)

// attempt is the context of one attempt. It holds the permit, which comes
// first: whoever watches the one watches the other.
type attempt struct {
	permit Permit
	context.Context
}

func (a *attempt) Value(key any) any {
	if p, ok := a.permit.carried(key); ok {
		return p
	}
	return a.Context.Value(key)
}

// timedAttempt is the context of an attempt that has a timeout. It makes its
// deadline real only when somebody asks for Done: a timer and a channel cost
// more than all the rest of an admission.
type timedAttempt struct {
	attempt
	deadline time.Duration // since the gate's base; 0 is none
	expiry   atomic.Pointer[expiry]
}

// expiry is the standard context with an attempt's deadline.
type expiry struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// over is the expiry of an attempt that ended before anybody asked for it.
var over = func() *expiry {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &expiry{ctx, cancel}
}()

func (a *timedAttempt) Deadline() (time.Time, bool) {
	d, ok := a.Context.Deadline()
	if a.deadline == 0 || (ok && d.Before(a.end())) {
		return d, ok
	}
	return a.end(), true
}

func (a *timedAttempt) end() time.Time { return a.permit.gate.base.Add(a.deadline) }

func (a *timedAttempt) Done() <-chan struct{} {
	if a.deadline == 0 {
		return a.Context.Done()
	}
	return a.real().Done()
}

// real makes the deadline real, if it is not.
func (a *timedAttempt) real() context.Context {
	if e := a.expiry.Load(); e != nil {
		return e.ctx
	}
	e := &expiry{}
	e.ctx, e.cancel = context.WithDeadline(a.Context, a.end())
	if !a.expiry.CompareAndSwap(nil, e) {
		e.cancel()
	}
	return a.expiry.Load().ctx
}

func (a *timedAttempt) Err() error {
	if a.deadline == 0 {
		return a.Context.Err()
	}
	if a.expiry.Load() == nil && a.Context.Err() == nil && time.Since(a.permit.gate.base) < a.deadline {
		return nil
	}
	return a.real().Err()
}

func (a *timedAttempt) Value(key any) any {
	if p, ok := a.permit.carried(key); ok {
		return p
	}
	if e := a.expiry.Load(); e != nil && e != over {
		return e.ctx.Value(key)
	}
	return a.Context.Value(key)
}

// finish frees the timer of the deadline. The context ends with its permit.
func (a *timedAttempt) finish() {
	if a.deadline != 0 && !a.expiry.CompareAndSwap(nil, over) {
		a.expiry.Load().cancel()
	}
}

// carrier is the context of a permit that belongs to no attempt.
type carrier struct {
	context.Context
	permit *Permit
}

func (c *carrier) Value(key any) any {
	if p, ok := c.permit.carried(key); ok {
		return p
	}
	return c.Context.Value(key)
}

// carried is the permit if it is what a context is asked for.
func (p *Permit) carried(key any) (*Permit, bool) {
	switch k := key.(type) {
	case held:
		return p, k.gate == p.gate && !p.ended()
	case permitKey:
		return p, true
	}
	return nil, false
}

// ended reports whether the permit was given back.
func (p *Permit) ended() bool {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.live() == nil
}
