package quota

import (
	"strconv"
	"strings"
	"time"
)

// parseReset reads the value of a reset, for which providers use seconds to
// go, epochs in four units, durations and dates. Magnitude tells them apart:
// as seconds to go, an epoch would be 50 years, and as an epoch, a delta would
// be in 1970. The result is the delay until then.
func parseReset(s string, unit time.Duration, server time.Time) (time.Duration, bool) {
	if n, ok := parseDecimal(s); ok {
		var epoch time.Duration
		switch {
		case n.digits <= 9:
			return clampDelay(time.Duration(n.times(uint64(unit)))), true
		case n.digits <= 11:
			epoch = time.Second
		case n.digits <= 14:
			epoch = time.Millisecond
		case n.digits <= 17:
			epoch = time.Microsecond
		case n.digits <= 20:
			epoch = time.Nanosecond
		default:
			return 0, false
		}
		at := time.Unix(0, int64(n.times(uint64(epoch))))
		return clampDelay(at.Sub(server)), true
	}
	if d, ok := parseDelta(s, unit); ok {
		return d, true
	}
	for _, parse := range []func(string) (time.Time, bool){
		parseRFC3339,
		func(s string) (time.Time, bool) { return parseHTTPDate(s, server) },
		parseScriptDate,
	} {
		if at, ok := parse(s); ok {
			return clampDelay(at.Sub(server)), true
		}
	}
	return 0, false
}

// parseDelta reads a value that is known to be relative.
func parseDelta(s string, unit time.Duration) (time.Duration, bool) {
	d, ok := parseSpan(s, unit)
	if !ok {
		d, ok = parseISODuration(s)
	}
	return clampDelay(d), ok
}

// parseRFC3339 reads a time stamp with its zone; Jira leaves out the seconds.
func parseRFC3339(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02T15:04Z") || s[10] != 'T' || s[13] != ':' {
		return time.Time{}, false
	}
	layout := time.RFC3339
	if s[16] != ':' {
		layout = "2006-01-02T15:04Z07:00"
	}
	t, err := time.Parse(layout, s)
	return t, err == nil
}

// parseScriptDate reads what Date.toString of JavaScript makes:
// "Tue Mar 10 2026 13:01:00 GMT+0100 (Central European Standard Time)".
func parseScriptDate(s string) (time.Time, bool) {
	const head = len("Tue Mar 10 2026 13:01:00 GMT")
	if len(s) < head+5 || !isName(s[:3], shortDays) || s[head-4:head] != " GMT" {
		return time.Time{}, false
	}
	if s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[15] != ' ' {
		return time.Time{}, false
	}
	if note := s[head+5:]; note != "" && (!strings.HasPrefix(note, " (") || !strings.HasSuffix(note, ")")) {
		return time.Time{}, false
	}
	zone, ok1 := parseZone(s[head : head+5])
	year, ok2 := digits(s[11:15])
	return makeTime(year, s[4:7], s[8:10], s[16:24], zone, ok1 && ok2)
}

// periodOf reads the period at the end of a dimension: "minute" and
// "tokens-day", and "unified-5h". A month has no fixed length.
func periodOf(dimension string) time.Duration {
	last := dimension[strings.LastIndexAny(dimension, "-_")+1:]
	switch last {
	case "second":
		return time.Second
	case "minute":
		return time.Minute
	case "hour":
		return time.Hour
	case "day":
		return 24 * time.Hour
	case "week":
		return 7 * 24 * time.Hour
	}
	if d, ok := parseGoDuration(last); ok {
		return d
	}
	return 0
}

// parseWindow reads the parameter w of a policy, in seconds.
func parseWindow(s string) time.Duration {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return time.Duration(decimal{whole: n}.times(uint64(time.Second)))
	}
	return 0
}
