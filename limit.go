package mete

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Requests is the unit of a limit that counts calls. Every call costs one of
// it unless it says otherwise; any other unit (tokens, points) costs what the
// call names.
const Requests = "requests"

// Limit is one quota of a provider: at most N units per Per.
//
// The zero model is the sliding window: never more than N units start in any
// half-open window Per. Bucket and Calendar select the other two models. See
// package rate for what each of them promises.
type Limit struct {
	// Name appears in errors, statistics and metrics as "limit:<name>".
	// Empty means the limit is called by its text, as in "limit:50/s".
	Name string
	// Unit is what is counted; empty means Requests.
	Unit string
	// N is how many units may start per Per. 0 admits nothing until it is
	// raised; negative is an error.
	N int64
	// Per is the period. It is ignored when Calendar is set.
	Per time.Duration
	// Burst is how many due starts may go together, never more than N in a
	// window. For a Bucket it is the capacity. 0 means 1; negative is an error.
	Burst int64
	// Bucket says that the provider documents a token bucket: at most
	// Burst + N/Per * t units in any t.
	Bucket bool
	// Calendar is "day" or "month" for a quota that starts afresh with the
	// calendar period in Zone, or empty.
	Calendar string
	// Zone is the IANA time zone of a Calendar limit; empty means UTC.
	Zone string
	// Budget says that a Calendar limit is what its user wants to spend: a call
	// that does not fit any more is refused at once with ErrBudget, and not
	// kept until the next period.
	Budget bool
	// Oversize is "alone" to admit a call that costs more than the limit holds:
	// when nothing else is in force, and with the rest as debt that later calls
	// wait for. Empty refuses such a call with ErrTooLarge.
	Oversize string
	// Margin widens the window by the largest difference that the way to the
	// provider may make between two calls. 0 means Per/150, at least 5 ms and
	// at most 50 ms.
	Margin time.Duration
}

// Per returns the limit of n calls per period, the provider's plain promise:
// never more than n starts in any window of that length.
func Per(n int64, period time.Duration) Limit {
	return Limit{N: n, Per: period}
}

// Bucket returns the limit of a provider that documents a token bucket which
// is refilled with n units per period and holds burst of them.
func Bucket(n int64, period time.Duration, burst int64) Limit {
	return Limit{N: n, Per: period, Burst: burst, Bucket: true}
}

// String returns the limit as it is written in flags and files: "50/s",
// "90000/m" or "5/15s".
func (l Limit) String() string {
	n := strconv.FormatInt(l.N, 10)
	switch l.Calendar {
	case "day":
		return n + "/d"
	case "month":
		return n + "/month"
	}
	switch l.Per {
	case time.Second:
		return n + "/s"
	case time.Minute:
		return n + "/m"
	case time.Hour:
		return n + "/h"
	case 24 * time.Hour:
		return n + "/d"
	}
	per := l.Per.String()
	if strings.HasSuffix(per, "m0s") {
		per = strings.TrimSuffix(per, "0s")
	}
	if strings.HasSuffix(per, "h0m") {
		per = strings.TrimSuffix(per, "0m")
	}
	return n + "/" + per
}

// bound is how errors and statistics call the limit.
func (l Limit) bound() string {
	if l.Name != "" {
		return "limit:" + l.Name
	}
	return "limit:" + l.String()
}

func (l Limit) unit() string {
	if l.Unit == "" {
		return Requests
	}
	return l.Unit
}

// ParseRate reads a rate: a number, a slash and a period, as in "50/s",
// "500/m", "5000/h", "10000/d", "5/15s" or "10r/s". A decimal number is turned
// into a whole number per a longer period: "0.5/s" is "1/2s".
func ParseRate(s string) (Limit, error) {
	text := strings.TrimSpace(s)
	num, per, ok := strings.Cut(text, "/")
	num, per = strings.TrimSpace(num), strings.TrimSpace(per)
	if !ok || per == "" {
		if _, err := strconv.ParseFloat(num, 64); err != nil {
			return Limit{}, fmt.Errorf("not a rate: %q: write a number per period: 50/s, 50/m, 50/h, 50/d or 50/15s", s)
		}
		return Limit{}, fmt.Errorf("not a rate: %q: say per what: %[2]s/s, %[2]s/m, %[2]s/h, %[2]s/d or %[2]s/15s", s, num)
	}
	period, err := parsePeriod(per)
	if err != nil {
		return Limit{}, fmt.Errorf("not a rate: %q: %w", s, err)
	}
	num = strings.TrimSuffix(num, "r")
	n, period, err := parseCount(num, period)
	if err != nil {
		return Limit{}, fmt.Errorf("not a rate: %q: %w", s, err)
	}
	return Limit{N: n, Per: period}, nil
}

func parseCount(num string, period time.Duration) (int64, time.Duration, error) {
	whole, frac, _ := strings.Cut(num, ".")
	digits := whole + frac
	if digits == "" || len(digits) > 18 || strings.Trim(digits, "0123456789") != "" || len(frac) > 9 {
		if strings.HasPrefix(num, "-") {
			return 0, 0, fmt.Errorf("the number must not be negative")
		}
		return 0, 0, fmt.Errorf("%q is not a number", num)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is not a number", num)
	}
	scale := int64(1)
	for range frac {
		scale *= 10
	}
	if n == 0 {
		return 0, period, nil
	}
	g := gcd(n, scale)
	n, scale = n/g, scale/g
	if scale > int64((1<<62)/period) {
		return 0, 0, fmt.Errorf("%q has too many decimals", num)
	}
	return n, period * time.Duration(scale), nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func parsePeriod(s string) (time.Duration, error) {
	switch strings.ToLower(s) {
	case "s", "sec", "second":
		return time.Second, nil
	case "m", "min", "minute":
		return time.Minute, nil
	case "h", "hour":
		return time.Hour, nil
	case "d", "day":
		return 24 * time.Hour, nil
	}
	days := time.Duration(1)
	text := s
	if t, ok := strings.CutSuffix(s, "d"); ok {
		days, text = 24, t+"h"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > 366*24*time.Hour {
		return 0, fmt.Errorf("%q is not a period: s, m, h, d, or a number of them as in 15s", s)
	}
	return d * days, nil
}
