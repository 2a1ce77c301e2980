package progress

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// share is the part of all waits that one bound has.
type share struct {
	bound string
	part  float64 // 0 to 1
}

// shares returns the bounds that were waited for, the largest first.
func shares(waits []Wait) []share {
	var total time.Duration
	for _, w := range waits {
		total += max(w.Total, 0)
	}
	var out []share
	for _, w := range waits {
		if w.Total > 0 {
			out = append(out, share{Printable(w.Bound), float64(w.Total) / float64(total)})
		}
	}
	slices.SortFunc(out, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.bound, b.bound))
	})
	return out
}

func shareList(ss []share) string {
	var parts []string
	for _, s := range ss {
		parts = append(parts, s.bound+" "+Percent(s.part))
	}
	return strings.Join(parts, " · ")
}
