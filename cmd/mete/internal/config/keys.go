package config

import (
	"slices"
	"strings"
)

// known are the keys of each kind of mapping.
var known = map[string][]string{
	"file":     {"version", "defaults", "state", "providers"},
	"defaults": {"concurrency", "timeout", "retry", "max_wait", "max_queue", "max_pause"},
	"provider": {"url", "auth", "headers", "concurrency", "rate", "burst", "limits", "timeout", "retry",
		"idempotent", "max_wait", "max_queue", "max_pause"},
	"auth":    {"header", "query", "value"},
	"timeout": {"connect", "ttfb", "idle", "attempt"},
	"retry":   {"attempts", "backoff", "budget", "keep_permit"},
	"backoff": {"base", "max"},
	"limit":   {"name", requests, "burst", "bucket", "window", "zone", "margin"},
}

const (
	requests  = "requests"
	otherUnit = "any unit but requests"
)

// notYet are the keys, and in a few places the values, that a later mete will
// know. They are refused by name, so that nobody believes them to be in force.
// A feature that is built removes its word here and reads it.
var notYet = map[string][]string{
	"file":        {"store", "lanes", "clients", "serve", "hosts"},
	"defaults":    {"headers_learn", "classify", "cost", "cache", "hosts"},
	"provider":    {"headers_learn", "classify", "cost", "cache", "fallback", "preset", "hosts", "lanes", "breaker"},
	"retry":       {"on"},
	"limit":       {"oversize", otherUnit},
	"concurrency": {"auto", "aimd"},
}

// refuse reports a word that is not available yet.
func (d *decoder) refuse(n *node, kind, word string) bool {
	if !slices.Contains(notYet[kind], word) {
		return false
	}
	d.errorf(n, "%q is not available yet", word)
	return true
}

// section holds the values of a mapping by key. A key that was refused or has
// no value is present with a nil node, so that it is not also called missing.
type section map[string]*node

// has reports whether the key was written at all.
func (s section) has(key string) bool { _, ok := s[key]; return ok }

// section checks the keys of a mapping. where is its path in the file, for
// messages. It returns nil when n is no mapping.
func (d *decoder) section(n *node, kind, where string) section {
	return d.sectionWith(n, kind, where, func(pair) bool { return false })
}

// sectionWith is section for a mapping with keys that only claim knows.
func (d *decoder) sectionWith(n *node, kind, where string, claim func(pair) bool) section {
	if where == "" {
		if n.kind != mapping {
			d.errorf(n, "the file must be a mapping with version and providers, not %s", n.kind)
			return nil
		}
	} else if !d.is(n, mapping, where, known[kind][0]+": ...") {
		return nil
	}
	s := section{}
	first := map[string]int{}
	for _, p := range n.pairs {
		if p.key.kind == refused {
			continue
		}
		key := p.key.text
		if line, seen := first[key]; seen {
			d.errorf(p.key, "%q is already on line %d", key, line)
			continue
		}
		first[key] = p.key.line
		switch {
		case slices.Contains(known[kind], key):
			s[key] = nil
			switch p.value.kind {
			case empty:
				d.errorf(p.key, "%q has no value: give one or remove the line", key)
			case refused:
			default:
				s[key] = p.value
			}
		case d.refuse(p.key, kind, key):
		case claim(p):
		default:
			d.errorf(p.key, "unknown key %q%s%s", key, inside(where), d.advice(kind, key))
		}
	}
	return s
}

func inside(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

// advice names the key that was probably meant, or where the key belongs.
func (d *decoder) advice(kind, key string) string {
	if kind == "limit" && key == "rate" {
		return " (write requests: 50/s)"
	}
	if best := nearest(key, slices.Concat(known[kind], notYet[kind])); best != "" {
		return ` (did you mean "` + best + `"?)`
	}
	for _, other := range []struct{ kind, place string }{
		{"file", "the top of the file"}, {"provider", "a provider"}, {"limit", "an entry of limits"},
		{"retry", "retry"}, {"timeout", "timeout"}, {"auth", "auth"}, {"backoff", "retry.backoff"},
	} {
		if slices.Contains(known[other.kind], key) {
			return " (it belongs in " + other.place + ")"
		}
	}
	return " (known here: " + strings.Join(known[kind], ", ") + ")"
}

// nearest returns the word that differs from s by a slip or two, or "".
func nearest(s string, words []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, least := "", 3
	for _, w := range words {
		if strings.Contains(w, " ") {
			continue
		}
		// Three letters may differ by one slip, six by two.
		if n := distance(fold(s), fold(w)); n < least && n*3 <= max(len(w), 3) {
			best, least = w, n
		}
	}
	return best
}

// distance is the optimal string alignment distance (Damerau, 1964): the
// letters to insert, remove, change or swap with a neighbour. Keys longer than
// any known one are not measured.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 99
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
