package mete

import (
	"context"
	"sync"
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

	mu     sync.Mutex
	inner  context.Context // once Done was called, if there is a deadline
	cancel context.CancelFunc
	over   bool
}

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

// real is the standard context with the attempt's deadline.
func (a *attempt) real() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inner == nil {
		a.inner, a.cancel = context.WithDeadline(a.parent, a.deadline)
		if a.over {
			a.cancel()
		}
	}
	return a.inner
}

func (a *attempt) Err() error {
	if a.deadline.IsZero() {
		return a.parent.Err()
	}
	if a.made() == nil && a.parent.Err() == nil && time.Now().Before(a.deadline) {
		return nil
	}
	return a.real().Err()
}

func (a *attempt) made() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inner
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
	if inner := a.made(); inner != nil {
		return inner.Value(key)
	}
	return a.parent.Value(key)
}

// finish frees the timer of the deadline. The context ends with its permit.
func (a *attempt) finish() {
	if a.deadline.IsZero() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.cancel != nil {
		a.cancel()
	}
}

// ended reports whether the permit was given back.
func (p *Permit) ended() bool {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.released
}
