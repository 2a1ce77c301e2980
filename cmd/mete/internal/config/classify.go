package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/mete/internal/classify"
)

// classifyWords are what an answer can be taken for.
var classifyWords = kindWords()

func kindWords() (words []string) {
	for _, k := range classify.Kinds() {
		words = append(words, string(k))
	}
	return words
}

// classify decodes a list of rules.
func (d *decoder) classify(n *node, where string) classify.Rules {
	if !d.is(n, list, "classify", "[{status: 429, as: rate_limited}]") {
		return nil
	}
	rules := classify.Rules{} // an empty list takes the rules of defaults away
	var before []*node
	for _, item := range n.items {
		if item.kind == refused {
			continue
		}
		r, ok := d.rule(item, where)
		if !ok {
			continue
		}
		for i, earlier := range rules {
			if earlier.JQ == "" && covers(earlier.Status, r.Status) {
				d.warnf(item, "the rule is never reached: that on line %d comes first", before[i].line)
				break
			}
		}
		rules, before = append(rules, r), append(before, item)
	}
	return rules
}

// covers reports whether every status of b is one of a; none means any.
func covers(a, b []int) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == 0
	}
	return !slices.ContainsFunc(b, func(s int) bool { return !slices.Contains(a, s) })
}

func (d *decoder) rule(n *node, where string) (r classify.Rule, ok bool) {
	if n.kind == empty {
		d.errorf(n, "an empty rule: write {status: 429, as: rate_limited} or remove it")
		return r, false
	}
	before := len(d.errs)
	s := d.section(n, "rule", where)
	if s == nil {
		return r, false
	}
	r.At = d.name + ":" + strconv.Itoa(n.line)
	if at := s["status"]; at != nil {
		r.Status = d.statuses(at)
	}
	if at := s["jq"]; at != nil {
		if expr, ok := d.word(at, "jq"); ok {
			r.JQ = expr
			d.compile(at, &r)
		}
	}
	if !s.has("status") && !s.has("jq") {
		d.errorf(n, "the rule fits every answer: give it a status, a jq expression or both")
	}
	as := ""
	if at := s["as"]; at != nil {
		d.oneOf(at, "as", classifyWords, &as)
	} else if !s.has("as") {
		d.errorf(n, "the rule does not say what the answer is: add as: rate_limited, or another of %s", strings.Join(classifyWords, ", "))
	}
	r.As = classify.Kind(as)
	return r, len(d.errs) == before
}

// statuses decodes one status or a list of them.
func (d *decoder) statuses(n *node) []int {
	items := []*node{n}
	if n.kind == list {
		if items = n.items; len(items) == 0 {
			d.errorf(n, "status is empty: remove it for any status")
		}
	}
	var all []int
	for _, item := range items {
		status, ok := d.count(item, "status", 1)
		switch {
		case !ok:
		case status < 200 || status > 599:
			d.errorf(item, "%d is not a status of an answer: they are 200 to 599", status)
		case slices.Contains(all, status):
			d.errorf(item, "status %d is there already", status)
		default:
			all = append(all, status)
		}
	}
	return all
}

// compile reports a mistake in the expression at its place, as far as the text
// stands in the file as it is.
func (d *decoder) compile(n *node, r *classify.Rule) {
	if strings.TrimSpace(r.JQ) == "" {
		d.errorf(n, "jq is empty: write an expression that is true of the body, or remove the line")
		return
	}
	err := r.Compile()
	if err == nil {
		return
	}
	col := n.col
	if e, ok := errors.AsType[*classify.ExprError](err); ok && e.Offset > 0 {
		line := []rune(d.line(n.line))
		rest := string(line[min(max(n.col-1, 0), len(line)):])
		if before, _, found := strings.Cut(rest, r.JQ); found {
			col += utf8.RuneCountInString(before) + utf8.RuneCountInString(r.JQ[:e.Offset])
		}
	}
	d.errorAt(n.line, col, "not a jq expression: %v", err)
}

// classify shows rules. A provider has its own or those of defaults.
func (s *shown) classify(rules classify.Rules, at []string) {
	from := s.find(under(at, "classify")...)
	written := from != nil
	if from == nil && at[0] == "providers" {
		from = s.find("defaults", "classify")
	}
	if len(rules) == 0 && from != nil {
		s.append(Value{Path: under(at, "classify"), Origin: s.origin(from), Written: written})
	}
	for i, r := range rules {
		entry := &shown{decoder: s.decoder, root: from.items[i]}
		add := func(key string, value any, steps ...string) {
			s.append(Value{
				Path:  under(under(at, "classify", "["+strconv.Itoa(i)+"]", key), steps...),
				Value: value, Origin: s.origin(entry.find(key)), Written: written,
			})
		}
		switch {
		case len(r.Status) == 1:
			add("status", int64(r.Status[0]))
		default:
			for j, status := range r.Status {
				add("status", int64(status), "["+strconv.Itoa(j)+"]")
			}
		}
		if r.JQ != "" {
			add("jq", r.JQ)
		}
		add("as", string(r.As))
	}
}
