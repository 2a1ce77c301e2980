package progress

import "time"

// Snapshot is the state of a run at one instant, as the runner knows it.
// Nonsense in it (NaN, negative counts, more rows done than there are) is
// shown as unknown or cut to what is possible, never printed.
type Snapshot struct {
	// Name is what the run works on, usually the name of the input file.
	Name string
	// State is empty while the run works; "draining", "halted", "fallback to
	// geo-b" and the like otherwise. A change of it is worth a line.
	State string

	// Total is the number of rows of the input, -1 if unknown.
	Total int64
	// Done counts rows that have their final record, each once, however often
	// it was tried. Rows done by an earlier run are included.
	Done int64
	// Resumed is the part of Done that an earlier run did. It says nothing
	// about the speed of this one.
	Resumed int64
	// OK and Failed divide Done by the outcome.
	OK, Failed int64
	// Throttled counts answers with 429 or its like, Retries counts attempts
	// after the first. Both count attempts, not rows.
	Throttled, Retries int64

	// InFlight is the number of permits in use out of Concurrency.
	InFlight, Concurrency int

	// Rate is how many calls start per second now.
	Rate float64
	// Limit is the limit that paces the run as its user wrote it ("500/m"),
	// empty if there is none.
	Limit string
	// LimitPerSecond is how many rows Limit lets start per second, 0 if there
	// is no limit.
	LimitPerSecond float64
	// RemainingCost and CostPerSecond replace the number of remaining rows and
	// LimitPerSecond in the estimate where rows differ in cost, as tokens do.
	// Both 0 means every row costs one.
	RemainingCost, CostPerSecond float64

	// Bound is what calls waited for most in the last seconds ("limit:50/s",
	// "semaphore", "pause"), empty if nothing waited. BoundShare is its part of
	// all waits, from 0 to 1.
	Bound      string
	BoundShare float64
	// Diagnosis is what set the pace in the last three seconds, in words.
	Diagnosis string

	// P50 and P95 are the latency of recent calls, 0 if unknown.
	P50, P95 time.Duration

	// PausedFor is how long from now nothing at all can start, 0 if the run is
	// not paused. PauseReason says who asked for it: "Retry-After of geo-a".
	PausedFor   time.Duration
	PauseReason string

	// Elapsed is how long this run has been working.
	Elapsed time.Duration
}
