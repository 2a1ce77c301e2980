package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	providerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	limitName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	wholeNumber  = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

const none = "none" // the word for "no bound" where 0 could mean anything

// is reports whether n has the kind that what must have, or says how to write it.
func (d *decoder) is(n *node, want kind, what, example string) bool {
	if n.kind == want {
		return true
	}
	d.errorf(n, "%s must be %s, not %s: write %s", what, want, n.kind, example)
	return false
}

// value is an expanded scalar.
type value struct {
	*node
	s       string
	parts   []string // that came from ${...}
	tainted bool
}

// shown is the value for a message: never one that came from a variable.
func (v value) shown() string {
	if v.tainted {
		return masked
	}
	return strconv.Quote(v.s)
}

// is reports whether the value reads as kind: what came from a variable is text
// in YAML and may be anything.
func (v value) is(k kind) bool { return v.kind == k || v.tainted }

// scalar expands a scalar.
func (d *decoder) scalar(n *node, what string) (value, bool) {
	if n.kind == list || n.kind == mapping {
		d.errorf(n, "%s must be one value, not %s", what, n.kind)
		return value{}, false
	}
	s, parts, ok := d.expand(n)
	return value{node: n, s: s, parts: parts, tainted: len(parts) > 0}, ok
}

// freeText reads text that is kept as it is. What came from a variable is a
// secret.
func (d *decoder) freeText(n *node, what string) (Secret, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return Secret{}, false
	}
	for _, part := range v.parts {
		d.hidden.add(part)
		d.secret.add(part)
	}
	s := newSecret(v.s)
	s.plain = !v.tainted
	return s, true
}

// word reads a name, which is shown in statistics and so must be written out.
func (d *decoder) word(n *node, what string) (string, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return "", false
	}
	if v.tainted {
		d.errorf(n, "%s must be written out, without ${...}: it is shown", what)
		return "", false
	}
	return v.s, true
}

// count reads a whole number of at least least.
func (d *decoder) count(n *node, what string, least int) (int, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return 0, false
	}
	if v.kind == text && !v.tainted && wholeNumber.MatchString(v.s) {
		d.errorf(n, "%s must be a number: remove the quotes from %s", what, v.shown())
		return 0, false
	}
	s := strings.TrimSpace(v.s)
	if v.is(number) && strings.HasPrefix(s, "-") {
		d.errorf(n, "%s must not be negative", what)
		return 0, false
	}
	i, err := strconv.Atoi(s)
	if !v.is(number) || !wholeNumber.MatchString(s) || err != nil || i > 1<<31-1 {
		d.errorf(n, "%s must be a whole number, not %s", what, v.shown())
		return 0, false
	}
	if i < least {
		d.errorf(n, "%s must be at least %d", what, least)
		return 0, false
	}
	return i, true
}

// bound is count where 0 would be read both as "none at all" and as "no
// bound", and "none" is the word for the latter.
func (d *decoder) bound(n *node, what string) (int, bool) {
	if n.text == none && n.kind == text {
		return 0, true
	}
	if n.text == "0" && n.kind == number {
		d.errorf(n, "%s must be at least 1; write none for no bound", what)
		return 0, false
	}
	return d.count(n, what, 1)
}

// duration reads a time with its unit, longer than 0. If none is allowed, it
// stands for no bound and gives 0.
func (d *decoder) duration(n *node, what string, allowNone bool) (time.Duration, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return 0, false
	}
	s := strings.TrimSpace(v.s)
	remedy := ""
	if allowNone {
		if s == none {
			return 0, true
		}
		remedy = "; write none for no bound"
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil && s != "0" && !strings.HasPrefix(s, "-") {
		if v.tainted {
			d.errorf(n, "%s needs a unit, as in 500ms, 30s, 5m or 2h", what)
		} else {
			d.errorf(n, "%s needs a unit: %[2]sms, %[2]ss, %[2]sm or %[2]sh", what, s)
		}
		return 0, false
	}
	t, err := parseDuration(s)
	switch {
	case err != nil:
		d.errorf(n, "%s must be a time, not %s: write it as in 500ms, 30s, 5m, 2h or 1d", what, v.shown())
	case t < 0:
		d.errorf(n, "%s must not be negative", what)
	case t == 0:
		d.errorf(n, "%s must be longer than 0%s", what, remedy)
	default:
		return t, true
	}
	return 0, false
}

// parseDuration is time.ParseDuration with days.
func parseDuration(s string) (time.Duration, error) {
	days, found := strings.CutSuffix(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseInt(days, 10, 64)
	if err != nil || n < -3660 || n > 3660 {
		return 0, fmt.Errorf("not a number of days: %q", s)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// truth reads true or false.
func (d *decoder) truth(n *node, what string) (bool, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return false, false
	}
	s := strings.TrimSpace(v.s)
	if !v.is(boolean) || s != "true" && s != "false" {
		d.errorf(n, "%s must be true or false, not %s", what, v.shown())
		return false, false
	}
	return s == "true", true
}

// share reads a part of the whole, "20%" or 0.2. "none" gives 0.
func (d *decoder) share(n *node, what string) (float64, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return 0, false
	}
	s := strings.TrimSpace(v.s)
	if s == none {
		return 0, true
	}
	digits, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) {
		d.errorf(n, "%s must be above 0%% and at most 100%%, not %s: write 20%%, or none for no bound", what, v.shown())
		return 0, false
	}
	return f, true
}
