package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/cost"
)

// costs decodes what a request costs by unit, over the rules in to: those of a
// provider replace, unit by unit, those of the defaults.
func (d *decoder) costs(n *node, to *[]cost.Rule) {
	if !d.is(n, mapping, "cost", `{tokens: "len(body)/4"}`) {
		return
	}
	rules := slices.Clone(*to)
	first := map[string]int{}
	for _, p := range n.pairs {
		unit := p.key.text
		switch {
		case p.key.kind == refused || p.value.kind == refused:
			continue
		case first[unit] > 0:
			d.errorf(p.key, "%q is already on line %d", unit, first[unit])
			continue
		case unit == requests:
			d.errorf(p.key, "a request costs one of requests: give the cost in another unit, such as tokens")
			continue
		case !cost.UnitName.MatchString(unit):
			d.errorf(p.key, "%q cannot be a unit: use up to 64 letters, digits and '_'", unit)
			continue
		case p.value.kind == empty:
			d.errorf(p.key, "%q has no value: give an expression or remove the line", unit)
			continue
		}
		first[unit] = p.key.line
		rule := d.cost(p.value, unit)
		if i := slices.IndexFunc(rules, func(r cost.Rule) bool { return r.Unit == unit }); i >= 0 {
			rules[i] = rule
		} else {
			rules = append(rules, rule)
		}
	}
	*to = rules
}

// cost decodes what a request costs in one unit: an expression or a mapping.
func (d *decoder) cost(n *node, unit string) cost.Rule {
	rule := cost.Rule{Unit: unit}
	if n.kind != mapping {
		rule.Estimate = d.expression(n, "cost."+unit, cost.Estimate)
		return rule
	}
	s := d.section(n, "cost", "cost."+unit)
	if !s.has("estimate") && !s.has("actual") {
		d.errorf(n, "cost.%s is empty: write {estimate: \"len(body)/4\"}", unit)
	}
	if at := s["estimate"]; at != nil {
		rule.Estimate = d.expression(at, "estimate", cost.Estimate)
	}
	if at := s["actual"]; at != nil {
		rule.Actual = d.expression(at, "actual", cost.Actual)
	}
	return rule
}

// expression compiles an expression. What is wrong with it is shown at its
// place, if it stands in the file letter by letter.
func (d *decoder) expression(n *node, what string, compile func(string) (*cost.Expr, error)) *cost.Expr {
	text, ok := d.word(n, what)
	if !ok {
		return nil
	}
	e, err := compile(text)
	if at, ok := errors.AsType[*cost.Error](err); ok {
		line, col := n.line, n.col
		if source := []rune(d.line(line)); at.Line == 1 && col >= 1 && col <= len(source) {
			start := col
			if strings.ContainsRune(`"'`, source[col-1]) {
				start++
			}
			if strings.HasPrefix(string(source[start-1:]), text) {
				col = start + at.Column - 1
			}
		}
		d.errorAt(line, col, "%s: %s", what, at.Message)
	}
	return e
}

// costs shows the rules.
func (s *shown) costs(rules []cost.Rule, at []string) {
	for _, r := range rules {
		path := under(at, "cost", r.Unit)
		if n := s.written(path); n != nil && n.kind != mapping {
			s.add(r.Estimate.String(), path...)
			continue
		}
		if r.Estimate != nil {
			s.add(r.Estimate.String(), under(path, "estimate")...)
		}
		if r.Actual != nil {
			s.add(r.Actual.String(), under(path, "actual")...)
		}
	}
}
