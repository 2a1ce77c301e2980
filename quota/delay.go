package quota

import (
	"strings"
	"time"
)

// MaxDelay is the longest delay and the furthest reset that is reported: 30
// days. Larger values saturate. It is only a guard against overflow and
// hostile servers; how long to wait at most is the caller's decision.
const MaxDelay = 30 * 24 * time.Hour

// clampDelay brings d, in nanoseconds, into [0, MaxDelay], rounded up to whole
// milliseconds: never earlier than the server asked.
func clampDelay(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return 0
	case d >= MaxDelay:
		return MaxDelay
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// units of a Go duration, longest name first where one is a prefix of another.
var units = []struct {
	name string
	size time.Duration
}{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"\u00b5s", time.Microsecond}, // micro sign
	{"\u03bcs", time.Microsecond}, // Greek letter mu
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
}

// parseGoDuration reads "6m0s", "20ms" or "2m59.56s". It differs from
// time.ParseDuration in three ways: there is no sign, "d" is a day, and what
// overflows saturates.
func parseGoDuration(s string) (time.Duration, bool) {
	d, rest, ok := scanGoDuration(s)
	return d, ok && rest == ""
}

// scanGoDuration reads as many number and unit pairs as s starts with.
func scanGoDuration(s string) (sum time.Duration, rest string, ok bool) {
next:
	for {
		n, tail, isNumber := scanDecimal(s)
		if !isNumber {
			return sum, s, ok
		}
		for _, u := range units {
			if after, found := strings.CutPrefix(tail, u.name); found {
				sum = min(sum+min(time.Duration(n.times(uint64(u.size))), 2*MaxDelay), 2*MaxDelay)
				s, ok = after, true
				continue next
			}
		}
		return sum, s, ok
	}
}

// parseSpan reads a plain number, counted in unit, or a Go duration.
func parseSpan(s string, unit time.Duration) (time.Duration, bool) {
	if n, ok := parseDecimal(s); ok {
		return time.Duration(n.times(uint64(unit))), true
	}
	return parseGoDuration(s)
}

// parseISODuration reads the days and times of ISO 8601, as in PT1M30S or
// P1DT2H. Years and months have no fixed length and are refused.
func parseISODuration(s string) (time.Duration, bool) {
	s, ok := strings.CutPrefix(s, "P")
	if !ok {
		return 0, false
	}
	var sum time.Duration
	steps, inTime, found := "WD", false, false
	for s != "" {
		if s[0] == 'T' && !inTime {
			s, steps, inTime, found = s[1:], "HMS", true, false
			continue
		}
		n, tail, ok := scanDecimal(s)
		if !ok || tail == "" {
			return 0, false
		}
		at := strings.IndexByte(steps, tail[0])
		if at < 0 {
			return 0, false
		}
		size := map[byte]time.Duration{
			'W': 7 * 24 * time.Hour, 'D': 24 * time.Hour,
			'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		}[tail[0]]
		sum = min(sum+min(time.Duration(n.times(uint64(size))), 2*MaxDelay), 2*MaxDelay)
		s, steps, found = tail[1:], steps[at+1:], true
	}
	return sum, found
}
