package metetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
)

// PeakInFlight fails the test if more than limit calls were in flight at the
// provider together, refused ones included.
func PeakInFlight(t TB, p *Provider, limit int) {
	t.Helper()
	if a := p.Audit(); a.Peak > limit {
		t.Errorf("metetest: %d calls were in flight together, at most %d may be: %v after the first start\n"+
			"  look at: a call that goes past the gate, a second gate for the same provider, a permit that is released before the answer has been read",
			a.Peak, limit, a.PeakAt)
	}
}

// MaxStarts fails the test if more than limit calls started in some half-open
// window of that length, refused ones included.
func MaxStarts(t TB, p *Provider, window time.Duration, limit int) {
	t.Helper()
	calls := p.Calls()
	first, last := busiest(calls, window)
	n := last - first + 1
	if n <= limit {
		return
	}
	refused := 0
	for _, c := range calls[first : last+1] {
		if c.Refused {
			refused++
		}
	}
	t.Errorf("metetest: %d calls started in a window of %v, at most %d may: numbers %d to %d, %v to %v after the first start, %d of them refused\n"+
		"  look at: a call that goes past the gate, a second gate for the same provider, retries outside mete, a Bucket where the provider counts windows",
		n, window, limit, first+1, last+1, calls[first].Start, calls[last].Start, refused)
}

// Utilisation fails the test if less than the share atLeast of the limit, from
// 0 to 1, was used between the first start and the last. It is meant for calls
// that always wait for the limit; what they ask for beside it is not known here.
// A gate stays below 1 by the Margin of its limit: 0.99 is a good demand.
func Utilisation(t TB, p *Provider, limit Limit, atLeast float64) {
	t.Helper()
	calls := p.Calls()
	if len(calls) < 2 || calls[len(calls)-1].Start == 0 {
		t.Errorf("metetest: utilisation needs calls at two times at least, there came %s\n"+
			"  look at: whether the calls reach this provider", count(len(calls), "call", "calls"))
		return
	}
	span := calls[len(calls)-1].Start
	// One start opens the span; each further one is worth Per/N of it.
	used := float64(len(calls)-1) * float64(limit.Per) / float64(limit.N) / float64(span)
	if used >= atLeast {
		return
	}
	gap, from := time.Duration(0), time.Duration(0)
	for i, c := range calls[1:] {
		if d := c.Start - calls[i].Start; d > gap {
			gap, from = d, calls[i].Start
		}
	}
	t.Errorf("metetest: %.1f %% of %d per %v was used, at least %.1f %% is to be: %d starts in %v; the longest time without one was %v, from %v on\n"+
		"  look at: Blocked in Gate.Stats for another bound (semaphore, pause), too few callers, a slow input",
		100*used, limit.N, limit.Per, 100*atLeast, len(calls), span, gap, from)
}

// NoRepeats fails the test if the provider did anything twice: if it answered
// calls with the same Key, as [Call] has it, with success more than once.
func NoRepeats(t TB, p *Provider) {
	t.Helper()
	again := repeats(p.Calls())
	if len(again) == 0 {
		return
	}
	keys := make([]string, 0, len(again))
	for key := range again {
		keys = append(keys, key)
	}
	// In the order in which they went wrong.
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(again[a][1].Start, again[b][1].Start), strings.Compare(a, b))
	})
	var list strings.Builder
	for i, key := range keys {
		if i == 5 {
			fmt.Fprintf(&list, "\n    and %d more", len(keys)-i)
			break
		}
		fmt.Fprintf(&list, "\n    %q, started at", key)
		for _, c := range again[key] {
			fmt.Fprintf(&list, " %v", c.Start)
		}
	}
	t.Errorf("metetest: %s answered with success more than once%s\n"+
		"  look at: retries after an answer that was lost, hedges, a resume that repeats what was done",
		count(len(keys), "call was", "calls were"), list.String())
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Blocked fails the test unless bound ("semaphore", "pause", "limit:50/s") is
// what the gate's calls have waited for most, by Blocked in Gate.Stats.
func Blocked(t TB, g *mete.Gate, bound string) {
	t.Helper()
	s := g.Stats()
	bounds := make([]string, 0, len(s.Blocked))
	for b, d := range s.Blocked {
		if d > 0 {
			bounds = append(bounds, b)
		}
	}
	if len(bounds) == 0 {
		t.Errorf("metetest: gate %q: nothing has waited, %q was to be the binding bound\n"+
			"  look at: whether the calls go through this gate, and are enough to fill it", s.Name, bound)
		return
	}
	slices.SortFunc(bounds, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Blocked[b], s.Blocked[a]), strings.Compare(a, b))
	})
	if bounds[0] == bound {
		return
	}
	var list strings.Builder
	for _, b := range bounds {
		fmt.Fprintf(&list, "\n    %v for %s", s.Blocked[b], b)
	}
	t.Errorf("metetest: gate %q: the binding bound is %q, it was to be %q\n"+
		"  look at: what its calls waited for%s", s.Name, bounds[0], bound, list.String())
}
