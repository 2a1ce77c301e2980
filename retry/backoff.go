// Package retry says how long to stay away after a failure and how much
// repetition is too much. It neither sleeps nor calls anything.
package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff is exponential back-off with full jitter: a random time between 0
// and Base * 2^n, at most Max (Marc Brooker, "Exponential Backoff And Jitter",
// 2015). The zero value means a Base of 500 ms and a Max of 30 s.
type Backoff struct {
	Base, Max time.Duration
}

// Ceiling is the longest time that Delay may give before attempt n+1, where n
// counts the attempts made, from 1. It never overflows.
func (b Backoff) Ceiling(n int) time.Duration {
	base, limit := b.Base, b.Max
	if base <= 0 {
		base = 500 * time.Millisecond
	}
	if limit <= 0 {
		limit = 30 * time.Second
	}
	for ; n > 1 && base < limit; n-- {
		if base > limit/2 {
			return limit
		}
		base *= 2
	}
	return min(base, limit)
}

// Delay is a random time up to Ceiling.
func (b Backoff) Delay(n int) time.Duration {
	return rand.N(b.Ceiling(n) + 1)
}

// Unhinted is the pause after the n-th throttle in a row (from 1) that came
// without a usable delay: 1, 2, 4 ... 60 s.
func Unhinted(n int) time.Duration {
	return Backoff{Base: time.Second, Max: time.Minute}.Ceiling(n)
}

// Jitter is what is added to the end of a pause of length d, so that several
// processes do not come back in the same instant: up to a quarter of an
// unhinted pause, up to a tenth of a hinted one, within 100 ms and 5 s.
func Jitter(d time.Duration, hinted bool) time.Duration {
	share := d / 4
	if hinted {
		share = d / 10
	}
	return rand.N(min(max(share, 100*time.Millisecond), 5*time.Second) + 1)
}
