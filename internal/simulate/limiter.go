package simulate

import (
	"time"

	"github.com/metehq/mete/adaptive"
)

// limiter is what the simulation needs of an algorithm.
type limiter interface {
	Limit() int
	Blocked(now time.Duration)                                        // a caller found no free permit
	Start(now time.Duration, inFlight int) ticket                     // a call goes to the wire; inFlight includes it
	Done(now time.Duration, t ticket, o outcome) (free time.Duration) // free is when its permit comes back
	Rate() float64                                                    // starts per second, 0 is any number
	Step(now time.Duration) (next time.Duration)                      // lets time pass; next is when to be called again, 0 for never
}

// ticket is what a limiter wants back at the end of a call.
type ticket struct {
	at       time.Duration
	inFlight int
	ours     adaptive.Ticket
}

type outcome uint8

const (
	success outcome = iota
	throttled
	failed
)

// Setting is what a new limiter is told. All have the bounds 1 and 1000.
type Setting struct {
	Initial int // 0 is 20
	Client  int
	Seed    uint64
}

const (
	minLimit = 1
	maxLimit = 1000
)

func (s Setting) initial() int {
	if s.Initial == 0 {
		return 20
	}
	return s.Initial
}

// Algorithm is a named way to make limiters.
type Algorithm struct {
	Name string
	New  func(Setting) limiter
}

// perSample makes a limiter of a rule that is applied to every sample and does
// nothing about pacing, quarantine or time.
type perSample struct {
	rule rule
}

// sample is what one call, or one window of calls, showed.
type sample struct {
	now      time.Duration
	latency  time.Duration
	inFlight int
	dropped  bool
}

// rule is an algorithm that only looks at samples.
type rule interface {
	limit() int
	sample(sample)
}

func (p *perSample) Limit() int                       { return p.rule.limit() }
func (p *perSample) Blocked(time.Duration)            {}
func (p *perSample) Rate() float64                    { return 0 }
func (p *perSample) Step(time.Duration) time.Duration { return 0 }

func (p *perSample) Start(now time.Duration, inFlight int) ticket {
	return ticket{at: now, inFlight: inFlight}
}

func (p *perSample) Done(now time.Duration, t ticket, o outcome) time.Duration {
	p.rule.sample(sample{now: now, latency: now - t.at, inFlight: t.inFlight, dropped: o != success})
	return now
}
