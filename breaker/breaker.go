// Package breaker is a circuit breaker as plain data: it stops calls to a
// provider that fails, and tries now and then whether it works again.
//
// A [Circuit] neither locks nor waits nor reads a clock. Its owner (a gate)
// holds a lock around every call and passes the time since an instant of its
// own choosing, which must not run backwards.
package breaker

import (
	"errors"
	"time"
)

// Config says when a circuit opens and closes. The zero Config never opens.
type Config struct {
	// Failures is the share of failed calls, from 0 to 1, at which the circuit
	// opens. 0 means that it never does.
	Failures float64
	// Window is the time over which calls are counted; 0 means 10 s.
	Window time.Duration
	// Calls is how many calls there must be in the window; 0 means 10.
	Calls int
	// Open is how long the circuit stays open before a probe is let through; 0
	// means 5 s.
	Open time.Duration
	// Probes is how many probes in a row must succeed before the circuit
	// closes, one at a time; 0 means 1.
	Probes int
	// Lease is how long a probe may take before another one is let through;
	// 0 means a minute.
	Lease time.Duration
}

// Check reports what is wrong with the configuration.
func (c Config) Check() error {
	if c.Failures < 0 || c.Failures > 1 {
		return errors.New("breaker: failures is a share from 0 to 1")
	}
	if c.Window < 0 || c.Calls < 0 || c.Open < 0 || c.Probes < 0 || c.Lease < 0 {
		return errors.New("breaker: window, calls, open, probes and lease must not be negative")
	}
	return nil
}

func (c Config) filled() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.Window, 10*time.Second)
	set(&c.Open, 5*time.Second)
	set(&c.Lease, time.Minute)
	if c.Calls == 0 {
		c.Calls = 10
	}
	if c.Probes == 0 {
		c.Probes = 1
	}
	return c
}

// State is what a circuit does with calls.
type State string

// The states.
const (
	Closed   State = "closed"    // calls go through and are counted
	Open     State = "open"      // nothing goes through
	HalfOpen State = "half-open" // one probe at a time goes through
)

// Result is how a call ended, as far as the provider is concerned.
type Result uint8

// The results. A call that its own caller cancelled, and one that was
// throttled, say nothing about whether the provider works.
const (
	Ignored Result = iota
	Success
	Failure
)

// Ticket belongs to a call that was let through. The zero Ticket is none.
type Ticket struct {
	generation uint32
	lease      uint32 // of a probe; 0 is none
}

// slices is into how many parts the window is cut: it moves in their steps.
const slices = 10

// Circuit is one breaker.
type Circuit struct {
	cfg        Config
	state      State
	generation uint32 // counts changes of state: results of an older one are ignored
	until      time.Duration
	lease      uint32 // the probe that is out; 0 is none
	leases     uint32
	leaseEnds  time.Duration
	successes  int
	counts     [slices]tally
	sum        tally         // of counts
	slice      int64         // number of the newest slice
	ends       time.Duration // when the newest slice does
	slack      time.Duration // see Coarse
}

type tally struct{ calls, failures int }

// New returns a closed circuit.
func New(cfg Config) *Circuit {
	c := &Circuit{state: Closed, generation: 1}
	c.Update(cfg)
	return c
}

// Update changes the configuration. The state stays.
func (c *Circuit) Update(cfg Config) {
	c.cfg = cfg.filled()
	c.ends, c.slack = 0, c.cfg.Window/100
}

// Coarse reports whether a success may be told with a time that is too early by
// d: the circuit is closed, and d is a hundredth of the window at most, or it
// counts nothing.
func (c *Circuit) Coarse(d time.Duration) bool {
	return c.state == Closed && (d <= c.slack || c.cfg.Failures == 0)
}

// State is what the circuit does with calls at now.
func (c *Circuit) State(now time.Duration) State {
	if c.state == Open && now >= c.until {
		return HalfOpen
	}
	return c.state
}

// Ready is the earliest time at which a call could go through; not after now
// means now.
func (c *Circuit) Ready(now time.Duration) time.Duration {
	switch {
	case c.state == Closed:
		return now
	case c.state == Open && now < c.until:
		return c.until
	case c.lease != 0 && now < c.leaseEnds:
		return c.leaseEnds
	}
	return now
}

// Start lets a call through, for which Ready has said now. While the circuit
// is not closed the call is a probe, with a lease: if nothing is heard of it
// until then, another one is let through.
func (c *Circuit) Start(now time.Duration) Ticket {
	if c.state == Open {
		c.turn(HalfOpen)
	}
	t := Ticket{generation: c.generation}
	if c.state == HalfOpen {
		c.leases++
		c.lease, c.leaseEnds = c.leases, now+c.cfg.Lease
		t.lease = c.lease
	}
	return t
}

// End tells how a call ended, and reports whether the circuit opened with it.
// A result from before the last change of state counts for nothing, and so
// does that of a probe whose lease has run out.
func (c *Circuit) End(now time.Duration, t Ticket, r Result) (opened bool) {
	if t.generation != c.generation {
		return false
	}
	if c.state == HalfOpen {
		if t.lease == 0 || t.lease != c.lease {
			return false
		}
		c.lease = 0
		switch r {
		case Failure:
			c.open(now)
			return true
		case Success:
			if c.successes++; c.successes >= c.cfg.Probes {
				c.turn(Closed)
			}
		}
		return false
	}
	if r == Ignored || c.cfg.Failures == 0 {
		return false
	}
	c.count(now, r)
	if n := c.sum; n.calls >= c.cfg.Calls && float64(n.failures) >= c.cfg.Failures*float64(n.calls) {
		c.open(now)
		return true
	}
	return false
}

func (c *Circuit) open(now time.Duration) {
	c.turn(Open)
	c.until = now + c.cfg.Open
}

func (c *Circuit) turn(s State) {
	c.state = s
	c.generation++
	c.lease, c.successes = 0, 0
	c.forget()
}

func (c *Circuit) forget() {
	clear(c.counts[:])
	c.sum = tally{}
}

// count adds a result to the window.
func (c *Circuit) count(now time.Duration, r Result) {
	if now >= c.ends {
		c.move(now)
	}
	newest := &c.counts[c.slice%slices]
	newest.calls++
	c.sum.calls++
	if r == Failure {
		newest.failures++
		c.sum.failures++
	}
}

// move makes the slice in which now lies the newest one.
func (c *Circuit) move(now time.Duration) {
	width := max(c.cfg.Window/slices, 1)
	n := int64(now / width)
	if n-c.slice >= slices || n < c.slice {
		c.forget()
		c.slice = n
	}
	for ; c.slice < n; c.slice++ {
		oldest := &c.counts[(c.slice+1)%slices]
		c.sum.calls -= oldest.calls
		c.sum.failures -= oldest.failures
		*oldest = tally{}
	}
	c.ends = time.Duration(n+1) * width
}
