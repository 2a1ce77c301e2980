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
	permit   *Permit
	own      Permit             // the permit itself, so that both are one allocation
	deadline time.Time          // zero is none
	whole    context.CancelFunc // ends the whole call with its last attempt; may be nil
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
	if a.deadline.IsZero() || (ok && d.Before(a.deadline)) {
		return d, ok
	}
	return a.deadline, true
}

func (a *attempt) Done() <-chan struct{} {
	if a.deadline.IsZero() {
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
	e.ctx, e.cancel = context.WithDeadline(a.parent, a.deadline)
	if !a.expiry.CompareAndSwap(nil, e) {
		e.cancel()
	}
	return a.expiry.Load().ctx
}

func (a *attempt) Err() error {
	if a.deadline.IsZero() {
		return a.parent.Err()
	}
	if a.expiry.Load() == nil && a.parent.Err() == nil && time.Now().Before(a.deadline) {
		return nil
	}
	return a.real().Err()
}

func (a *attempt) Value(key any) any {
	switch k := key.(type) {
	case held:
		if k.gate == a.permit.gate && !a.permit.ended() {
			return a.permit
		}
	case permitKey:
		return a.permit
	}
	if e := a.expiry.Load(); e != nil && e != over {
		return e.ctx.Value(key)
	}
	return a.parent.Value(key)
}

// finish frees the timer of the deadline. The context ends with its permit.
func (a *attempt) finish() {
	if !a.deadline.IsZero() && !a.expiry.CompareAndSwap(nil, over) {
		a.expiry.Load().cancel()
	}
}

// ended reports whether the permit was given back.
func (p *Permit) ended() bool {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.released
}
