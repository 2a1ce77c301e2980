package mete

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// DefaultMaxWait is how long a call queues when Config.MaxWait is 0.
const DefaultMaxWait = time.Minute

// Config describes one provider. It is plain data: it can be printed,
// compared, loaded from a file and given to Gate.Update.
type Config struct {
	// Name is the provider's name, for errors, statistics and durable state.
	Name string
	// Concurrency is how many permits there are: calls in flight at once,
	// each weighing 1 unless it says more. 0 means that it is not limited;
	// negative that nothing is admitted.
	Concurrency int
	// Adaptive finds the number of permits while they are used, in place of
	// Concurrency, from how calls fare: see package adaptive. Nil does not.
	Adaptive *adaptive.Config
	// Limits are taken all or nothing at each start.
	Limits []Limit
	// Lanes share the gate by weight. None means one lane for all.
	Lanes []Lane
	// Retry says how failed attempts are repeated. The zero value does not
	// repeat.
	Retry Retry
	// Breaker stops calls while the provider fails. The zero value never does.
	// A call is refused with ErrBreaker while it is open, unless it is Patient.
	Breaker breaker.Config
	// Timeout bounds one attempt, from its grant to its end, and Total the
	// whole call with its waits and back-offs. 0 means no bound.
	Timeout, Total time.Duration
	// MaxWait is how long a call may queue for admission before it is refused
	// with ErrWaitTimeout, and the longest pause that is waited for; what is
	// left of a pause when the call comes does not count as queueing. 0 means
	// DefaultMaxWait, negative no bound.
	MaxWait time.Duration
	// MaxQueue is how many calls may queue; one more is refused with
	// ErrQueueFull. 0 means no bound.
	MaxQueue int
	// Learn says what becomes of the quotas that responses show (package
	// metehttp reads them). The zero value is LearnCap: they may hold calls
	// back, never let more through than Limits and Concurrency do.
	Learn Learn
	// Observer is told what happens; nil listens to nothing.
	Observer *Observer `json:"-"`
	// FindLeaks reports a permit that is garbage-collected before it was
	// released, with the place where it was taken, and gives it back. It costs
	// a stack trace and a few allocations for each permit.
	FindLeaks bool
	// State is the folder in which what was consumed of long windows, calendar
	// limits and pauses is kept across restarts. Empty means in memory only.
	State string
}

// Lane is one order of service: first in, first out. Lanes that wait share
// what is granted in proportion to their weights.
type Lane struct {
	Name string
	// Weight is the lane's share; 0 means 1.
	Weight float64
	// Reserve is the part of the permits, from 0 to 1, that only this lane may
	// use, and Cap the part that it may use at most; 0 means all.
	Reserve, Cap float64
	// MaxQueue and MaxWait replace those of the gate for this lane; 0 does not.
	MaxQueue int
	MaxWait  time.Duration
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	// Attempts is the largest number of attempts, the first included.
	// 0 and 1 mean no repetition.
	Attempts int
	// Base and Max shape the back-off: a random time between 0 and
	// Base * 2^n, at most Max ("full jitter"). 0 means 500 ms and 30 s.
	Base, Max time.Duration
	// Delay is a fixed back-off in place of Base and Max; 0 means none.
	Delay time.Duration
	// Budget is the share of repeated attempts among all attempts that
	// server errors, time-outs and resets may cause, as in 0.2. 0 means no bound.
	Budget float64
	// KeepPermit keeps the permit during the back-off. Tokens are paid again.
	KeepPermit bool
}

// MaxConcurrency is the most permits there can be, for the size of pools; 0 is
// no bound.
func (c Config) MaxConcurrency() int {
	if c.Adaptive != nil {
		_, most := c.Adaptive.Bounds()
		return most
	}
	return max(c.Concurrency, 0)
}

func (c Config) maxWait() time.Duration {
	if c.MaxWait == 0 {
		return DefaultMaxWait
	}
	return max(c.MaxWait, 0)
}

// check reports every mistake in c.
func (c Config) check() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("mete: gate %q: "+format, append([]any{c.Name}, args...)...))
	}
	seen := map[string]bool{}
	for _, l := range c.Limits {
		name := l.bound()
		if seen[name+" "+l.unit()] {
			add("%s is given twice", name)
		}
		seen[name+" "+l.unit()] = true
		switch {
		case l.N < 0:
			add("%s: %d is negative", name, l.N)
		case l.Burst < 0:
			add("%s: burst %d is negative", name, l.Burst)
		case l.Margin < 0:
			add("%s: margin %v is negative", name, l.Margin)
		case l.Budget && l.Calendar == "":
			add("%s: a budget needs a calendar: day or month", name)
		case l.Oversize != "" && l.Oversize != "alone", l.Oversize != "" && l.Calendar != "":
			add("%s: oversize %q: want alone, and no calendar", name, l.Oversize)
		case l.Calendar != "" && l.Calendar != "day" && l.Calendar != "month":
			add("%s: calendar %q is neither day nor month", name, l.Calendar)
		case l.Calendar == "" && l.Per <= 0:
			add("%s: the period %v is not positive", name, l.Per)
		}
		if _, err := time.LoadLocation(l.Zone); l.Calendar != "" && err != nil {
			add("%s: %v", name, err)
		}
	}
	reserved := 0.0
	for i, l := range c.Lanes {
		if l.Weight < 0 || l.Reserve < 0 || l.Reserve > 1 || l.Cap < 0 || l.Cap > 1 || l.MaxQueue < 0 || l.MaxWait < 0 {
			add("lane %q: weight, reserve, cap, max queue and max wait must not be negative, reserve and cap at most 1", l.Name)
		}
		for _, o := range c.Lanes[:i] {
			if o.Name == l.Name {
				add("lane %q is given twice", l.Name)
			}
		}
		reserved += l.Reserve
	}
	if reserved > 1+rounding {
		add("the lanes reserve %.0f %% of the permits", 100*reserved)
	}
	r := c.Retry
	if r.Attempts < 0 || r.Base < 0 || r.Max < 0 || r.Delay < 0 || r.Budget < 0 {
		add("retry: attempts, base, max, delay and budget must not be negative")
	}
	if err := c.Learn.check(); err != nil {
		add("%v", err)
	}
	if err := c.Breaker.Check(); err != nil {
		add("%v", err)
	}
	if c.Adaptive != nil {
		if err := c.Adaptive.Check(); err != nil {
			add("%v", err)
		}
	}
	if c.Timeout < 0 || c.Total < 0 || c.MaxQueue < 0 {
		add("timeout, total and max queue must not be negative")
	}
	return errors.Join(errs...)
}
