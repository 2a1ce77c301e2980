package simulate

import (
	"fmt"
	"math"
)

// bounds are what the limiter under test must reach in a scenario, on average
// over the seeds and, for goodput, with the worst of them. 0 is no bound.
type bounds struct {
	goodput, worst    float64 // at least
	p50, p99          float64 // at most
	least, most, cv   float64 // of the limit
	after             float64 // seconds to 90 % of the optimum, at most
	failed, all, jain float64 // shares at most, in the window and of all calls; fairness at least
	throttled         float64 // share at most, in the window
}

// figures lie a little below what the algorithm can do, so that luck does not
// break them and the loss of one of its parts does: see Ablations.
var figures = map[string]bounds{
	"S1":      {goodput: 0.96, worst: 0.94, p50: 1.8, p99: 1.25, cv: 0.25, least: 22, most: 34},
	"S2-down": {goodput: 0.96, worst: 0.94, p50: 2.6, after: 2},
	"S2-up":   {goodput: 0.95, worst: 0.93, p50: 2.6, after: 2},
	"S3":      {goodput: 0.92, worst: 0.90, after: 12, least: 40, most: 60},
	"S3b":     {goodput: 0.97, worst: 0.95, after: 12, least: 40, most: 60},
	"S4":      {goodput: 0.96, worst: 0.94, after: 1, p50: 1.5},
	"S5":      {goodput: 0.95, worst: 0.93, p50: 3, p99: 1.2},
	"S6":      {goodput: 0.97, worst: 0.95, throttled: 0.015},
	"S6w":     {goodput: 0.95, worst: 0.92, throttled: 0.01},
	"S7":      {goodput: 0.97, worst: 0.96, jain: 0.85, p50: 2.5},
	"S8":      {goodput: 0.91, worst: 0.88, all: 0.005, after: 4},
	"S8f":     {goodput: 0.94, worst: 0.92, all: 0.01, after: 3},
	"S9":      {goodput: 0.96, worst: 0.94, least: 20},
	"S9b":     {goodput: 0.93, worst: 0.88, least: 20},
	"S10":     {goodput: 0.95, worst: 0.94, after: 4, p50: 1.3},
	"S11":     {goodput: 0.90, worst: 0.86, p50: 2.5},
	"S12":     {goodput: 0.90, worst: 0.80, failed: 0.015},
	"S13":     {goodput: 0.97, worst: 0.95, failed: 0.015},
}

// In every scenario.
const (
	leastGoodput = 0.90
	mostP50      = 2.6
	lead         = 2 // times the goodput of each rival in its worst scenario
)

// rivals are those that must be left behind.
var rivals = []string{"gradient2", "correlation", "arc", "aimd"}

// Missed says which figures a row fails.
func (r Row) Missed() (missed []string) {
	b, m := figures[r.Scenario.Name], r.Mean
	least := func(what string, got, want float64) {
		if want != 0 && !(got >= want) {
			missed = append(missed, fmt.Sprintf("%s %s: %s %.3g is below %.3g", r.Scenario.Name, r.Algorithm, what, got, want))
		}
	}
	most := func(what string, got, want float64) {
		if want != 0 && !(got <= want) {
			missed = append(missed, fmt.Sprintf("%s %s: %s %.3g is above %.3g", r.Scenario.Name, r.Algorithm, what, got, want))
		}
	}
	least("goodput", m.Goodput, max(b.goodput, leastGoodput))
	least("goodput of the worst seed", r.Worst, b.worst)
	most("p50", m.P50, orElse(b.p50, mostP50))
	most("p99", m.P99, b.p99)
	least("limit", m.Limit, b.least)
	most("limit", m.Limit, b.most)
	most("variation of the limit", m.CV, b.cv)
	most("seconds to 90 %", m.Converge, b.after)
	most("failed share", m.Failed, b.failed)
	most("failed share of the whole run", m.FailedAll, b.all)
	most("share of 429", m.Throttled, b.throttled)
	least("fairness", m.Jain, b.jain)
	return missed
}

func orElse(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// Summary is an algorithm over all scenarios.
type Summary struct {
	Algorithm string
	Goodput   float64 // of the worst scenario
	Where     string
	Low       int // scenarios below 0.9
	P50       float64
	Failed    float64 // in the window, the worst, without S9 and S9b
}

// Summarize takes rows together by algorithm.
func Summarize(rows []Row) (all []Summary) {
	at := map[string]int{}
	for _, r := range rows {
		i, known := at[r.Algorithm]
		if !known {
			i = len(all)
			at[r.Algorithm] = i
			all = append(all, Summary{Algorithm: r.Algorithm, Goodput: math.Inf(1)})
		}
		s := &all[i]
		if r.Mean.Goodput < s.Goodput {
			s.Goodput, s.Where = r.Mean.Goodput, r.Scenario.Name
		}
		if r.Mean.Goodput < 0.9 {
			s.Low++
		}
		s.P50 = max(s.P50, r.Mean.P50)
		if r.Scenario.Provider.Errors == 0 {
			s.Failed = max(s.Failed, r.Mean.Failed)
		}
	}
	return all
}

// Behind says which rivals are not far enough behind.
func Behind(all []Summary) (missed []string) {
	worst := map[string]float64{}
	for _, s := range all {
		worst[s.Algorithm] = s.Goodput
	}
	for _, name := range rivals {
		if theirs, ran := worst[name]; ran && worst[Knee] < lead*theirs {
			missed = append(missed, fmt.Sprintf("the worst goodput of %s, %.2f, is less than %d times that of %s, %.2f", Knee, worst[Knee], lead, name, theirs))
		}
	}
	return missed
}
