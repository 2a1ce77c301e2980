package progress

import (
	"cmp"
	"fmt"
	"math"
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
		parts = append(parts, s.bound+" "+percent(s.part))
	}
	return strings.Join(parts, " · ")
}

// Diagnosis says in one sentence what set the pace of the run, and what to do
// about it. A bound that has more than half of all waits is binding. It is
// empty if nothing was called.
func (s *Summary) Diagnosis() string {
	var starts int64
	for _, p := range s.Providers {
		starts += p.Starts
	}
	if starts == 0 {
		return ""
	}
	ss := shares(s.Waits)
	if len(ss) == 0 || s.hardlyWaited() {
		return "Calls hardly waited: the input, or this machine, set the pace."
	}
	if ss[0].part <= 0.5 {
		return "No single bound set the pace; the first two above share most of the waiting."
	}
	kind, _, _ := strings.Cut(ss[0].bound, ":")
	switch kind {
	case "limit":
		return "The limit set the pace, as it should: more permits change nothing" + s.spare() + "."
	case "semaphore":
		return s.semaphore()
	case "pause":
		return "The provider asked to be left alone: its true limit is lower than the one given here, or somebody else spends it too."
	case "breaker":
		return "The breaker was open most of the time: the provider failed too often to be called."
	case "store":
		return "The shared store was slow: calls waited for its answers more than for anything else."
	case "conn":
		return "Opening connections took the most time: look at name resolution, TLS, and whether connections are kept alive."
	case "backoff":
		return "Most of the waiting was back-off before retries: look at the errors first."
	}
	return "Calls waited for " + ss[0].bound + " more than for anything else."
}

// hardlyWaited reports whether all waits together are less than a hundredth of
// the time that calls were on the wire.
func (s *Summary) hardlyWaited() bool {
	var waits time.Duration
	for _, w := range s.Waits {
		waits += max(w.Total, 0)
	}
	return waits.Seconds() < s.Latency.Mean.Seconds()*float64(s.Latency.Count)/100
}

// busy is how many permits the rate of the only provider keeps busy at the
// measured latency (Little's law: L = λW), 0 if it cannot be said.
func (s *Summary) busy() (n int, p Provider) {
	if len(s.Providers) != 1 {
		return 0, Provider{}
	}
	p = s.Providers[0]
	calls := math.Ceil(p.LimitPerSecond * s.Latency.Mean.Seconds())
	if p.Concurrency <= 0 || !(calls > 0 && calls < math.MaxInt32) {
		return 0, p
	}
	return int(calls), p
}

// spare says how few permits were needed if there are far too many.
func (s *Summary) spare() string {
	n, p := s.busy()
	if n == 0 || p.Concurrency/4 < n {
		return ""
	}
	return fmt.Sprintf(" (%s at %s keeps about %d of %d busy)", Printable(p.Limit), span(s.Latency.Mean), n, p.Concurrency)
}

func (s *Summary) semaphore() string {
	n, p := s.busy()
	switch {
	case n == 0:
		return "All permits were busy: the provider is slow, or -c is too low."
	case n > p.Concurrency:
		return fmt.Sprintf("All %d permits were busy: -c is too low, %s at %s needs about %d.",
			p.Concurrency, Printable(p.Limit), span(s.Latency.Mean), n)
	}
	return fmt.Sprintf("All %d permits were busy though %s at %s needs about %d: the provider is slow at times, or -c leaves no headroom.",
		p.Concurrency, Printable(p.Limit), span(s.Latency.Mean), n)
}
