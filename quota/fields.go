package quota

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// fields holds the header fields that can speak of quotas, by lower-case name.
// All field lines and all spellings of a name are kept: http.Header.Get would
// see only the first line.
type fields map[string][]string

// maxField bounds the value of one field, in bytes. The longest real ones have
// a few hundred; the lines that a hostile server adds are left out.
const maxField = 4 << 10

func newFields(h http.Header) fields {
	names := make([]string, 0, 8)
	for name := range h {
		if matters(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // spellings of one name in a fixed order
	f := make(fields, len(names))
	for _, name := range names {
		lower := strings.ToLower(name)
		room := maxField
		for _, line := range f[lower] {
			room -= len(line) + 1
		}
		for _, line := range h[name] {
			if room -= len(line) + 1; room < 0 {
				break
			}
			f[lower] = append(f[lower], line)
		}
	}
	return f
}

// Mentioned reports whether a field name of h can speak of a quota, so that
// Parse is worth its cost on a success. It allocates nothing and takes a few
// nanoseconds for each name, which is written as net/http writes it or in
// lower case.
func Mentioned(h http.Header) bool {
	for name := range h {
		if len(name) < len("ratelimit") {
			continue
		}
		switch name[0] | 0x20 {
		case 'a', 'b', 'r', 's', 'x', 'z': // of the families and vendors
			if strings.Contains(name[1:], "imit") {
				return true
			}
		}
	}
	return false
}

// matters sorts out the names that no rule of this package looks at, before
// anything is allocated for them.
func matters(name string) bool {
	return contains(name, "limit") || contains(name, "retry") || strings.EqualFold(name, "Date") ||
		strings.EqualFold(name, "Age") || strings.EqualFold(name, "X-Amzn-Errortype")
}

// contains reports whether a name has a word, which is in lower case, in it.
func contains(name, word string) bool {
	for i := range len(name) - len(word) + 1 {
		if name[i]|0x20 == word[0] && strings.EqualFold(name[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// members returns the comma-separated members of all lines of a field, trimmed
// and without their quotes.
func (f fields) members(name string) []string {
	var list []string
	for _, line := range f[name] {
		for {
			at := nextComma(line)
			if m := unquote(trim(line[:at])); m != "" {
				list = append(list, m)
			}
			if at == len(line) {
				break
			}
			line = line[at+1:]
		}
	}
	return list
}

// nextComma finds the comma that ends the first member of s. The comma in
// "Tue, 10 Mar 2026 12:00:00 GMT" does not.
func nextComma(s string) int {
	for i := range len(s) {
		if s[i] == ',' && !isDayMonth(strings.TrimLeft(s[i+1:], " \t")) {
			return i
		}
	}
	return len(s)
}

// isDayMonth reports whether s starts like "10 Mar" or "10-Mar".
func isDayMonth(s string) bool {
	return len(s) >= 6 && isDigit(s[0]) && isDigit(s[1]) && (s[2] == ' ' || s[2] == '-') && isName(s[3:6], shortMonths)
}

// trim removes what HTTP calls optional white space, and no other.
func trim(s string) string { return strings.Trim(s, " \t") }

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// serverNow is the server's clock when the response was sent: absolute times
// are turned into delays with it, since the two clocks may differ. A
// difference below 2 s is taken for the resolution of Date.
func (f fields) serverNow(now time.Time) time.Time {
	now = now.Round(0) // the monotonic clock cannot be compared with a Date
	for _, s := range f.members("date") {
		date, ok := parseHTTPDate(s, now)
		if !ok {
			continue
		}
		if date = date.Add(f.age()); date.Sub(now).Abs() >= 2*time.Second {
			return date
		}
		break
	}
	return now
}

// age is how long the response lay in a cache.
func (f fields) age() time.Duration {
	var age time.Duration
	for _, s := range f.members("age") {
		if n, ok := parseDecimal(s); ok && n.frac == 0 {
			age = max(age, time.Duration(n.times(uint64(time.Second))))
		}
	}
	return age
}
