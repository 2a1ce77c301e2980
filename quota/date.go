package quota

import (
	"strings"
	"time"
)

const (
	shortDays   = "Mon Tue Wed Thu Fri Sat Sun "
	longDays    = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday "
	shortMonths = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec "
)

// parseHTTPDate reads the three forms of RFC 9110, section 5.6.7, with their
// case. The zone is GMT, UTC, UT, Z or +hhmm: time.Parse takes other names,
// such as PST, for an offset of zero, which is eight hours early. The weekday
// need not fit the date. A two-digit year means the last such year that is
// less than 50 years ahead of now.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	day, rest, ok := strings.Cut(s, ", ")
	switch {
	case !ok:
		return parseAsctime(s)
	case isName(day, shortDays) && len(rest) > 21: // 06 Nov 1994 08:49:37 GMT
		if rest[2] != ' ' || rest[6] != ' ' || rest[11] != ' ' || rest[20] != ' ' {
			return time.Time{}, false
		}
		zone, ok1 := parseZone(rest[21:])
		year, ok2 := digits(rest[7:11])
		return makeTime(year, rest[3:6], rest[:2], rest[12:20], zone, ok1 && ok2)
	case isName(day, longDays) && len(rest) > 19: // 06-Nov-94 08:49:37 GMT
		if rest[2] != '-' || rest[6] != '-' || rest[9] != ' ' || rest[18] != ' ' {
			return time.Time{}, false
		}
		zone, ok1 := parseZone(rest[19:])
		year, ok2 := digits(rest[7:9])
		year += (now.Year()/100 + 1) * 100
		latest := now.AddDate(50, 0, 0)
		for {
			t, ok := makeTime(year, rest[3:6], rest[:2], rest[10:18], zone, ok1 && ok2)
			// The 29th of February does not exist in every century.
			if ok && !t.After(latest) || year < now.Year()-100 {
				return t, ok
			}
			year -= 100
		}
	}
	return time.Time{}, false
}

// parseAsctime reads "Sun Nov  6 08:49:37 1994", which is in UTC.
func parseAsctime(s string) (time.Time, bool) {
	if len(s) != 24 || !isName(s[:3], shortDays) || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return time.Time{}, false
	}
	year, ok := digits(s[20:])
	return makeTime(year, s[4:7], strings.TrimPrefix(s[8:10], " "), s[11:19], time.UTC, ok)
}

// makeTime puts a date together and refuses what the calendar does not have.
// A leap second is the second after it.
func makeTime(year int, month, day, clock string, zone *time.Location, ok bool) (time.Time, bool) {
	mon := strings.Index(shortMonths, month+" ")
	d, ok1 := digits(day)
	if !ok || !ok1 || !isName(month, shortMonths) || clock[2] != ':' || clock[5] != ':' {
		return time.Time{}, false
	}
	h, ok1 := digits(clock[:2])
	m, ok2 := digits(clock[3:5])
	s, ok3 := digits(clock[6:8])
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 60 || d < 1 {
		return time.Time{}, false
	}
	first := time.Date(year, time.Month(mon/4+1), 1, 0, 0, 0, 0, zone)
	if d > first.AddDate(0, 1, -1).Day() {
		return time.Time{}, false
	}
	return time.Date(year, first.Month(), d, h, m, s, 0, zone), true
}

func parseZone(s string) (*time.Location, bool) {
	switch s {
	case "GMT", "UTC", "UT", "Z":
		return time.UTC, true
	}
	if len(s) != 5 || s[0] != '+' && s[0] != '-' {
		return nil, false
	}
	h, ok1 := digits(s[1:3])
	m, ok2 := digits(s[3:])
	offset := h*3600 + m*60
	if s[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), ok1 && ok2 && h < 24 && m < 60
}

// isName reports whether s is one of names, each of which ends with a space.
func isName(s, names string) bool {
	if strings.Contains(s, " ") {
		return false
	}
	at := strings.Index(names, s+" ")
	return at == 0 || at > 0 && names[at-1] == ' '
}
