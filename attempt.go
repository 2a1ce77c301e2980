package mete

import (
	"context"
	"sync/atomic"
	"time"
)

// attempt is the context of one attempt. It carries the permit, and it makes
// its deadline real only when somebody asks for Done: a timer and a channel
// cost more than all the rest of an admission.
type attempt struct {
	parent   context.Context
	permit   Permit        // both are one allocation
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

func (a *attempt) Deadline() (time.Time, bool) {
	d, ok := a.parent.Deadline()
	if a.deadline == 0 || (ok && d.Before(a.end())) {
		return d, ok
	}
	return a.end(), true
}

func (a *attempt) end() time.Time { return a.permit.gate.base.Add(a.deadline) }

func (a *attempt) Done() <-chan struct{} {
	if a.deadline == 0 {
		return a.parent.Done()
	}
	return a.real().Done()
}

// real makes the deadline real, if it is not.
func (a *attempt) real() context.Context {
	if e := a.expiry.Load(); e != nil {
		return e.ctx
	}
	e := &expiry{}
	e.ctx, e.cancel = context.WithDeadline(a.parent, a.end())
	if !a.expiry.CompareAndSwap(nil, e) {
		e.cancel()
	}
	return a.expiry.Load().ctx
}

func (a *attempt) Err() error {
	if a.deadline == 0 {
		return a.parent.Err()
	}
	if a.expiry.Load() == nil && a.parent.Err() == nil && time.Since(a.permit.gate.base) < a.deadline {
		return nil
	}
	return a.real().Err()
}

func (a *attempt) Value(key any) any {
	if p, ok := a.permit.carried(key); ok {
		return p
	}
	if e := a.expiry.Load(); e != nil && e != over {
		return e.ctx.Value(key)
	}
	return a.parent.Value(key)
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

// finish frees the timer of the deadline. The context ends with its permit.
func (a *attempt) finish() {
	if a.deadline != 0 && !a.expiry.CompareAndSwap(nil, over) {
		a.expiry.Load().cancel()
	}
}

// ended reports whether the permit was given back.
func (p *Permit) ended() bool {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.released
}
