package mete

import (
	"fmt"
	"strings"
	"time"
)

// Diagnose says in a sentence what set the pace of a gate between two
// snapshots, and what to do about it. A bound is binding if the head of the
// queue was blocked on it for more than half of the time that it was blocked
// at all.
func Diagnose(before, now Stats) string {
	if n := now.Leaks - before.Leaks; n > 0 {
		return fmt.Sprintf("%d permits were lost: taken and never released. Config.FindLeaks tells where.", n)
	}
	if now.Breaker != "" && now.Breaker != "closed" {
		return fmt.Sprintf("The circuit breaker is %s: the provider fails.", now.Breaker)
	}
	if now.Paused > 0 {
		return fmt.Sprintf("Paused for another %v: the provider asked to stay away.", now.Paused.Round(time.Millisecond))
	}
	bound, most, all := "", time.Duration(0), time.Duration(0)
	for b, d := range now.Blocked {
		d -= before.Blocked[b]
		all += d
		if d > most {
			bound, most = b, d
		}
	}
	attempts := now.Attempts - before.Attempts
	switch {
	case all == 0 && attempts == 0:
		return "Idle: nothing was asked for."
	case all == 0:
		return fmt.Sprintf("Nothing waited: %d calls started as they came. The callers set the pace.", attempts)
	case 2*most <= all:
		return "No single bound: the waits are shared by " + shares(before, now, all) + "."
	case bound == boundNames[boundSemaphore]:
		return fmt.Sprintf("All %d permits were in use: the provider answers more slowly than the limits allow calls to start. More permits help only if it has room.", now.Concurrency)
	case bound == boundNames[boundPause]:
		return fmt.Sprintf("The provider opens again after a pause: %.0f %% of the rate is in force.", 100*now.Rate)
	case bound == boundNames[boundBreaker]:
		return "Calls waited for the circuit breaker."
	}
	return fmt.Sprintf("%s set the pace, as it should: more permits change nothing.", strings.TrimPrefix(bound, "limit:"))
}

// shares lists the bounds with their parts of the waiting.
func shares(before, now Stats, all time.Duration) string {
	var parts []string
	for _, l := range now.Limits {
		parts = appendShare(parts, l.Bound, before, now, all)
	}
	for _, b := range boundNames {
		parts = appendShare(parts, b, before, now, all)
	}
	return strings.Join(parts, ", ")
}

func appendShare(parts []string, bound string, before, now Stats, all time.Duration) []string {
	if d := now.Blocked[bound] - before.Blocked[bound]; d > 0 {
		parts = append(parts, fmt.Sprintf("%s (%.0f %%)", bound, 100*float64(d)/float64(all)))
	}
	return parts
}

// Saturation is the part of the permits that is in use, from 0 to 1; 0 where
// they are not bounded.
func (s Stats) Saturation() float64 {
	if s.Concurrency == 0 {
		return 0
	}
	return float64(s.InUse) / float64(s.Concurrency)
}

// Shed is how many calls were refused, for whatever reason.
func (s Stats) Shed() (n int64) {
	for _, c := range s.Refused {
		n += c
	}
	return n
}
