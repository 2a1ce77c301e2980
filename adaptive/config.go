package adaptive

import (
	"fmt"
	"time"
)

// Algorithm is how a limit is found.
type Algorithm string

// The algorithms.
const (
	// Knee keeps the queue at the provider short: see the package comment.
	Knee Algorithm = "knee"
	// Failures is Knee without what it learns from latency, and so without
	// drains: for a provider that refuses and never queues.
	Failures Algorithm = "failures"
	// AIMD adds a permit for each clean window and multiplies by Backoff for
	// each window with a failure.
	AIMD Algorithm = "aimd"
)

// Config says how a limit is found. The zero Config is usable.
type Config struct {
	// Algorithm is Knee unless set.
	Algorithm Algorithm
	// Min and Max bound the limit; 0 means 1 and 1000.
	Min, Max int
	// Initial is the limit at the start; 0 means 20, or the nearest bound.
	Initial int
	// Backoff is by what AIMD multiplies, above 0 and below 1; 0 means 0.9.
	Backoff float64
	// Seed is for the choice of latencies that are kept of a large window, and
	// for the jitter of holds, which keeps processes from trying all at once.
	// The same calls at the same times with the same seed give the same limits.
	Seed uint64
	// Without leaves out parts of Knee. It is for experiments, which show what
	// each part is worth: leave it alone.
	Without Without
}

// Without names parts of Knee to leave out, for experiments.
type Without struct {
	Drains      bool // the baseline only falls
	Alignment   bool // drains come at times of each limiter's own
	Guard       bool // latency lowers the limit although throughput is down too
	Budget      bool // any failure lowers the limit
	Quarantine  bool // the permit of a failed call is free at once
	RateCeiling bool // a 429 counts as a failure
}

// Check reports what is wrong with the configuration.
func (c Config) Check() error {
	switch c.Algorithm {
	case "", Knee, Failures, AIMD:
	default:
		return fmt.Errorf("adaptive: there is no algorithm %q; there are %s, %s and %s", c.Algorithm, Knee, Failures, AIMD)
	}
	if c.Min < 0 || c.Max < 0 || c.Initial < 0 {
		return fmt.Errorf("adaptive: min, max and initial must be at least 1")
	}
	if !(c.Backoff == 0 || c.Backoff > 0 && c.Backoff < 1) {
		return fmt.Errorf("adaptive: backoff %v must be above 0 and below 1", c.Backoff)
	}
	f := c.filled()
	if f.Min > f.Max {
		return fmt.Errorf("adaptive: min %d is above max %d", f.Min, f.Max)
	}
	if f.Initial < f.Min || f.Initial > f.Max {
		return fmt.Errorf("adaptive: initial %d is not between min %d and max %d", f.Initial, f.Min, f.Max)
	}
	return nil
}

// Bounds are the least and the largest limit.
func (c Config) Bounds() (least, most int) {
	f := c.filled()
	return f.Min, f.Max
}

func (c Config) filled() Config {
	if c.Algorithm == "" {
		c.Algorithm = Knee
	}
	if c.Min == 0 {
		c.Min = 1
	}
	if c.Max == 0 {
		c.Max = 1000
	}
	if c.Initial == 0 {
		c.Initial = max(c.Min, min(20, c.Max))
	}
	if c.Backoff == 0 {
		c.Backoff = 0.9
	}
	return c
}

// seconds is d as a number to calculate with.
func seconds(d time.Duration) float64 { return d.Seconds() }

// duration is the opposite of seconds.
func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
