package mete

import "time"

// Observer is told what happens at a gate. Its functions may be nil; none is
// called with a lock held, and all may be called from several goroutines at
// once. They should be quick: the call that they tell of waits for them. One
// that panics does so in the call that it is told of, which loses no permit. A
// gate without an Observer pays a few nanoseconds for it.
type Observer struct {
	// Admitted is called when an attempt was admitted, before it starts.
	Admitted func(Admission)
	// Ended is called when an attempt of Do, Get or Tries has ended.
	Ended func(Ending)
	// Refused is called when a call was refused.
	Refused func(*Rejected)
	// Paused is called when a provider was closed for a time.
	Paused func(gate string, d time.Duration)
	// Leaked is called when a permit was garbage-collected before it was
	// released (see Config.FindLeaks), with the stack where it was taken.
	Leaked func(gate, stack string)
}

// Admission tells of an attempt that was admitted.
type Admission struct {
	Gate, Lane string
	Attempt    int // from 1
	Weight     int
	Waits      Waits
}

// Ending tells of an attempt that ended.
type Ending struct {
	Gate, Lane string
	Attempt    int
	Outcome    Outcome
	Held       time.Duration // from the grant on
	Again      bool          // another attempt follows
}

func (g *Gate) observeRefusal(r *Rejected) {
	if o := g.cfg.Load().Observer; o != nil && o.Refused != nil {
		o.Refused(r)
	}
}

func (g *Gate) observePause(d time.Duration) {
	if o := g.cfg.Load().Observer; d > 0 && o != nil && o.Paused != nil {
		o.Paused(g.name, d)
	}
}

func (g *Gate) observeAdmission(p *Permit, attempt int) {
	if o := g.cfg.Load().Observer; o != nil && o.Admitted != nil {
		returned := false
		defer func() {
			if !returned { // it panics, and nobody gets the permit
				p.Cancel()
			}
		}()
		waits := p.Waits()
		g.mu.Lock()
		lane, weight := p.flight.lane.Name, int(p.flight.weight)
		g.mu.Unlock()
		o.Admitted(Admission{Gate: g.name, Lane: lane, Attempt: attempt, Weight: weight, Waits: waits})
		returned = true
	}
}
