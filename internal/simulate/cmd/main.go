// Command cmd prints how limiters of concurrency fare in simulated scenarios.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/simulate"
)

func main() {
	seeds := flag.Int("seeds", 5, "runs of each, with seeds 1, 2, ...")
	only := flag.String("scenarios", "", "only these, as S1,S9b")
	algorithms := flag.String("algorithms", "", "only these, as knee,aimd")
	check := flag.Bool("check", false, "exit 1 if a figure is missed")
	flag.Parse()

	scenarios := pick(simulate.Scenarios(), *only, func(s simulate.Scenario) string { return s.Name })
	compared := pick(simulate.Algorithms(), *algorithms, func(a simulate.Algorithm) string { return a.Name })

	var missed []string
	last := ""
	rows := simulate.Compare(scenarios, compared, *seeds, func(r simulate.Row) {
		if r.Scenario.Name != last {
			last = r.Scenario.Name
			title(r.Scenario.Name + "  " + r.Scenario.What)
		}
		line(r)
		if r.Algorithm == simulate.Knee {
			missed = append(missed, r.Missed()...)
		}
	})
	all := simulate.Summarize(rows)
	summary(all)
	missed = append(missed, simulate.Behind(all)...)

	if slices.ContainsFunc(compared, func(a simulate.Algorithm) bool { return a.Name == simulate.Knee }) {
		missed = append(missed, ablations(scenarios, *seeds)...)
	}
	for _, m := range missed {
		fmt.Println("missed:", m)
	}
	if *check && len(missed) > 0 {
		os.Exit(1)
	}
}

// ablations prints what becomes of the scenarios without a part each.
func ablations(scenarios []simulate.Scenario, seeds int) (missed []string) {
	title("knee without one of its parts")
	for _, a := range simulate.Ablations() {
		for _, sc := range scenarios {
			if sc.Name == a.Scenario {
				simulate.Compare([]simulate.Scenario{sc}, []simulate.Algorithm{a.Algorithm}, seeds, func(r simulate.Row) {
					r.Algorithm = sc.Name + " " + a.Name
					line(r)
					missed = append(missed, a.Needless(r)...)
				})
			}
		}
	}
	return missed
}

func title(text string) {
	fmt.Printf("\n%s\n%-18s %7s %7s %6s %6s %8s %8s %9s %7s %5s %5s\n",
		text, "", "goodput", "(worst)", "p50", "p99", "failed", "in all", "90% after", "limit", "cv", "jain")
}

func line(r simulate.Row) {
	m := r.Mean
	after := "never"
	if !math.IsInf(m.Converge, 0) {
		after = fmt.Sprintf("%.1f s", m.Converge)
	}
	fmt.Printf("%-18s %7.2f %7.2f %6.1f %6.1f %7.1f%% %7.1f%% %9s %7.0f %5.2f %5.2f\n",
		r.Algorithm, m.Goodput, r.Worst, m.P50, m.P99, 100*m.Failed, 100*m.FailedAll, after, m.Limit, m.CV, m.Jain)
}

func summary(all []simulate.Summary) {
	fmt.Printf("\nThe worst of all scenarios\n%-18s %7s %-8s %6s %6s %8s\n", "", "goodput", "in", "below .9", "p50", "failed")
	for _, s := range all {
		fmt.Printf("%-18s %7.2f %-8s %8d %6.1f %7.1f%%\n", s.Algorithm, s.Goodput, s.Where, s.Low, s.P50, 100*s.Failed)
	}
}

func pick[T any](all []T, names string, name func(T) string) []T {
	if names == "" {
		return all
	}
	return slices.DeleteFunc(all, func(v T) bool { return !slices.Contains(strings.Split(names, ","), name(v)) })
}
