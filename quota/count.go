package quota

import (
	"strings"
	"time"
)

// count is a limit, a remainder or a usage as it is on the wire.
type count struct {
	decimal
	known, negative bool
}

func countOf(n int64) count {
	if n < 0 {
		return count{decimal: decimal{whole: uint64(-n)}, known: true, negative: true}
	}
	return count{decimal: decimal{whole: uint64(n)}, known: true}
}

// parseCount reads a number with at most 15 digits before the point, which is
// the range of an Integer in RFC 9651, so that it fits in an int64 and a
// float64 and no server can lift a limit beyond reason.
func parseCount(s string) count {
	s, minus := strings.CutPrefix(s, "-")
	n, ok := parseDecimal(s)
	if !ok || n.digits > 15 {
		return count{}
	}
	return count{decimal: n, known: true, negative: minus && (n.whole > 0 || n.frac > 0)}
}

// less orders counts; the unknown is the largest.
func (a count) less(b count) bool {
	switch {
	case !a.known || !b.known:
		return a.known
	case a.negative != b.negative:
		return a.negative
	case a.negative:
		a, b = b, a
	}
	return a.whole < b.whole || a.whole == b.whole && a.frac < b.frac
}

func minCount(a, b count) count {
	if b.less(a) {
		return b
	}
	return a
}

// isGrouped reports whether a line is a number with its thousands grouped, as
// in "1,000". It could be a list as well, so it says nothing.
func isGrouped(line string) bool {
	parts := strings.Split(strings.TrimPrefix(line, "-"), ",")
	for i, p := range parts {
		if i == len(parts)-1 {
			p, _, _ = strings.Cut(p, ".")
		}
		if _, ok := digits(p); !ok || len(p) > 3 || i > 0 && len(p) != 3 {
			return false
		}
	}
	return len(parts) > 1
}

// policy is a limit with the window it holds for; a window of 0 is unknown.
type policy struct {
	limit  count
	window time.Duration
}

// settle makes the numbers of a quota consistent and reports whether they say
// anything at all. Contradictions become unknown rather than guesses.
func settle(q *Quota, limit, remaining, used count) bool {
	if limit.negative {
		// -1 stands for unknown, and then so does what is beside it.
		if remaining.negative || !remaining.known {
			return false
		}
		limit = count{}
	}
	if remaining.negative {
		remaining = count{known: limit.known} // over the limit
	}
	if limit.known && limit.whole == 0 && limit.frac > 0 {
		// 0.02 per second is 1 per 50 seconds and must not become 0.
		if q.Window > 0 {
			q.Window = time.Duration(mulDiv(uint64(q.Window), fracUnit, limit.frac))
			limit = countOf(1)
		} else {
			limit = count{}
		}
	}
	if !remaining.known && limit.known && used.known && !used.negative {
		remaining = countOf(max(0, int64(limit.whole)-int64(used.times(1))))
	}
	if limit.known && limit.whole == 0 && (!remaining.known || remaining.whole > 0) {
		limit = count{} // often "unlimited"; only 0 of 0 says that nothing is allowed
	}
	q.Limit, q.HasLimit = int64(limit.whole), limit.known
	q.Remaining, q.HasRemaining = int64(remaining.whole), remaining.known
	if q.HasLimit && q.HasRemaining {
		q.Remaining = min(q.Remaining, q.Limit)
	}
	return q.HasLimit || q.HasRemaining || !q.Reset.IsZero()
}
