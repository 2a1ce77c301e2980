package mete

import "time"

// Config describes one provider. It is plain data: it can be printed,
// compared, loaded from a file and given to Gate.Update.
type Config struct {
	// Name is the provider's name, for errors, statistics and durable state.
	Name string
	// Concurrency is how many permits there are: calls in flight at once,
	// each weighing 1 unless it says more. 0 means that it is not limited.
	Concurrency int
	// Limits are taken all or nothing at each start.
	Limits []Limit
	// Retry says how failed attempts are repeated. The zero value does not
	// repeat; DefaultRetry has the usual figures.
	Retry Retry
	// Timeout bounds one attempt, from its grant to its end, and Total the
	// whole call with its waits and back-offs. 0 means no bound.
	Timeout, Total time.Duration
	// MaxWait is how long a call may queue for admission before it is refused
	// with ErrWaitTimeout, and the longest pause that is waited for. 0 means
	// no bound.
	MaxWait time.Duration
	// MaxQueue is how many calls may queue; one more is refused with
	// ErrQueueFull. 0 means no bound.
	MaxQueue int
	// State is the folder in which what was consumed of long windows, calendar
	// limits and pauses is kept across restarts. Empty means in memory only.
	State string
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	// Attempts is the largest number of attempts, the first included.
	// 0 and 1 mean no repetition.
	Attempts int
	// Base and Max shape the back-off: a random time between 0 and
	// Base * 2^n, at most Max ("full jitter"). 0 means 500 ms and 30 s.
	Base, Max time.Duration
	// Budget is the share of repeated attempts among all attempts that
	// server errors, time-outs and resets may cause, as in 0.2. 0 means no bound.
	Budget float64
	// KeepPermit keeps the permit during the back-off. Tokens are paid again.
	KeepPermit bool
}
