package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cost"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/semaphore"
)

// costFlags say what rows cost in other units than requests.
type costFlags struct {
	limits, costs, max []string
}

func (f *costFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.StringArrayVar(&f.limits, "limit", nil, "`UNIT=N/UNIT` of what rows cost: tokens=90000/m")
	s.StringArrayVar(&f.costs, "cost", nil, "what a row costs: `'tokens=len(body)/4'`")
	s.StringArrayVar(&f.max, "max-cost", nil, "stop before more is spent than `UNIT=N`: tokens=5M")
}

// rates are the limits of --limit.
func (f *costFlags) rates() ([]mete.Limit, error) {
	var limits []mete.Limit
	for _, text := range f.limits {
		unit, rate, ok := strings.Cut(text, "=")
		switch {
		case !ok || unit == "":
			return nil, fmt.Errorf("--limit %s: write UNIT=RATE, as in tokens=90000/m", text)
		case unit == mete.Requests:
			return nil, fmt.Errorf("--limit %s: use --rate for requests", text)
		case !cost.UnitName.MatchString(unit):
			return nil, fmt.Errorf("--limit %s: %q cannot be a unit: use letters, digits and '_'", text, unit)
		}
		l, err := mete.ParseRate(rate)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", text, err)
		}
		l.Name, l.Unit = unit, unit
		if slices.ContainsFunc(limits, func(o mete.Limit) bool { return o.Unit == unit }) {
			l.Name += ":" + rate
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// rules are the expressions of --cost.
func (f *costFlags) rules() ([]cost.Rule, error) {
	var rules []cost.Rule
	for _, text := range f.costs {
		unit, expr, ok := strings.Cut(text, "=")
		switch {
		case !ok || strings.TrimSpace(expr) == "":
			return nil, fmt.Errorf("--cost %s: write UNIT=EXPRESSION, as in tokens=len(body)/4", text)
		case unit == mete.Requests:
			return nil, fmt.Errorf("--cost %s: a request costs one of requests: name another unit, such as tokens", text)
		case !cost.UnitName.MatchString(unit):
			return nil, fmt.Errorf("--cost %s: %q cannot be a unit: use letters, digits and '_'", text, unit)
		case slices.ContainsFunc(rules, func(r cost.Rule) bool { return r.Unit == unit }):
			return nil, fmt.Errorf("--cost %s: %s has a cost already: which one holds?", text, unit)
		}
		e, err := cost.Estimate(expr)
		if at, ok := errors.AsType[*cost.Error](err); ok {
			return nil, fmt.Errorf("--cost %s: at character %d: %s", text, len([]rune(unit))+1+at.Column, at.Message)
		}
		rules = append(rules, cost.Rule{Unit: unit, Estimate: e})
	}
	return rules, nil
}

// over puts the estimates of flags over the rules of a file, whose expressions
// for the true cost stay.
func over(file, flags []cost.Rule) []cost.Rule {
	rules := slices.Clone(file)
	for _, f := range flags {
		if i := slices.IndexFunc(rules, func(r cost.Rule) bool { return r.Unit == f.Unit }); i >= 0 {
			rules[i].Estimate = f.Estimate
			continue
		}
		rules = append(rules, f)
	}
	return rules
}

// most is what --max-cost allows, by unit.
func (f *costFlags) most() (map[string]int64, error) {
	most := map[string]int64{}
	for _, text := range f.max {
		unit, number, ok := strings.Cut(text, "=")
		n, err := parseAmount(number)
		switch {
		case !ok || !cost.UnitName.MatchString(unit) || err != nil:
			return nil, fmt.Errorf("--max-cost %s: write UNIT=N, as in tokens=5M or tokens=250k", text)
		case unit == mete.Requests:
			return nil, fmt.Errorf("--max-cost %s: use --max-requests", text)
		case most[unit] > 0:
			return nil, fmt.Errorf("--max-cost %s: %s has a bound already: which one holds?", text, unit)
		}
		most[unit] = n
	}
	return most, nil
}

// parseAmount reads a whole number, also as in 5M or 1.5k.
func parseAmount(s string) (int64, error) {
	factor := 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			s, factor = digits, f
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if n *= factor; err != nil || strings.Trim(s, "0123456789.") != "" || n != float64(int64(n)) || n < 1 || n > semaphore.MaxLimit {
		return 0, fmt.Errorf("not a whole number from 1: %q", s)
	}
	return int64(n), nil
}

// spent is what earlier runs have spent, by unit: what was sent again counts
// again. The result file says it of rows that have a record, the manifest of the
// others.
func spent(path string, before *journal.Manifest) (map[string]int64, error) {
	sum := map[string]int64{}
	if before != nil {
		sum = before.Unrecorded()
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sum, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := record.NewReader(file)
	for lines.Next() {
		costs, err := record.ReadCosts(lines.Line())
		if err != nil {
			continue // what is wrong with a line is said when the file is opened
		}
		for _, c := range costs {
			sum[c.Unit] += int64(c.True)
		}
	}
	return sum, lines.Err()
}
