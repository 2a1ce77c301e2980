// Command cmd prints how limiters of concurrency fare in simulated scenarios.
package main

import (
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/simulate"
)

func main() {
	seeds := flag.Int("seeds", 5, "runs of each, with seeds 1, 2, ...")
	only := flag.String("scenarios", "", "only these, as S1,S9b")
	algorithms := flag.String("algorithms", "", "only these, as aimd,vegas")
	flag.Parse()

	scenarios := pick(simulate.Scenarios(), *only, func(s simulate.Scenario) string { return s.Name })
	compared := pick(simulate.Algorithms(), *algorithms, func(a simulate.Algorithm) string { return a.Name })
	simulate.Header(os.Stdout)
	simulate.Compare(scenarios, compared, *seeds, func(r simulate.Row) { r.Print(os.Stdout) })
}

func pick[T any](all []T, names string, name func(T) string) []T {
	if names == "" {
		return all
	}
	return slices.DeleteFunc(all, func(v T) bool { return !slices.Contains(strings.Split(names, ","), name(v)) })
}
