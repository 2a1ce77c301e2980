package results

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Condition says which records to keep: those that fit all that is set.
type Condition struct {
	OK, Failed bool
	Statuses   string // "429,5xx,200-299"; 0 is no answer
	Kinds      string // "timeout,http_5xx"
	JQ         string // a jq expression; one output that is neither null nor false keeps the record
}

// Filter writes the records that fit to w. It looks at every line by itself,
// also at those that a later record of the same row has made obsolete.
func Filter(in *Input, c Condition, w io.Writer) error {
	f, err := c.compile()
	if err != nil {
		return err
	}
	out := newOutput(w)
	err = in.each(func(l *line) error {
		keep, err := f.keep(l)
		if err != nil || !keep {
			return err
		}
		return out.line(l.text)
	})
	if err != nil {
		return errors.Join(err, out.flush())
	}
	return out.flush()
}

type filter struct {
	ok, failed bool
	statuses   []statusRange
	kinds      []string
	jq         *jq
}

type statusRange struct{ first, last int }

func (c Condition) compile() (*filter, error) {
	if c == (Condition{}) {
		return nil, errors.New("say which records to keep: --failed, --ok, --status 429,5xx, --kind timeout or --jq EXPR")
	}
	if c.OK && c.Failed {
		return nil, errors.New("no record is both --ok and --failed")
	}
	f := &filter{ok: c.OK, failed: c.Failed}
	var err error
	if c.Statuses != "" {
		if f.statuses, err = parseStatuses(c.Statuses); err != nil {
			return nil, err
		}
	}
	if c.Kinds != "" {
		if f.kinds, err = parseKinds(c.Kinds); err != nil {
			return nil, err
		}
	}
	if c.JQ != "" {
		if f.jq, err = compileJQ(c.JQ); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *filter) keep(l *line) (bool, error) {
	if f.ok && !l.head.OK || f.failed && l.head.OK {
		return false, nil
	}
	if f.statuses != nil || f.kinds != nil {
		var status int
		var kind string
		err := members(l.text, func(name, value []byte) (err error) {
			switch string(name) {
			case "status":
				if !isNull(value) {
					status, err = strconv.Atoi(string(value))
				}
			case "error":
				kind, err = kindOf(value)
			}
			return err
		})
		if err != nil {
			return false, l.fail(err)
		}
		if f.statuses != nil && !slices.ContainsFunc(f.statuses, func(r statusRange) bool { return r.first <= status && status <= r.last }) {
			return false, nil
		}
		if f.kinds != nil && !slices.Contains(f.kinds, kind) {
			return false, nil
		}
	}
	if f.jq == nil {
		return true, nil
	}
	keep, err := f.jq.keeps(l.text)
	if err != nil {
		err = l.fail(fmt.Errorf("--jq: %w", err))
	}
	return keep, err
}

// kindOf reads the kind out of the value of "error".
func kindOf(value []byte) (kind string, err error) {
	if len(value) == 0 || value[0] != '{' {
		return "", nil
	}
	err = members(value, func(name, value []byte) (err error) {
		if string(name) == "kind" {
			kind, err = text(value)
		}
		return err
	})
	return kind, err
}

func parseStatuses(list string) ([]statusRange, error) {
	var out []statusRange
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		r, ok := parseStatus(item)
		if !ok {
			return nil, fmt.Errorf("--status %q: %q is not a status; write 429, 5xx, 200-299, or 0 for no answer", list, item)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseStatus(s string) (statusRange, bool) {
	if len(s) == 3 && '1' <= s[0] && s[0] <= '9' && strings.EqualFold(s[1:], "xx") {
		first := int(s[0]-'0') * 100
		return statusRange{first, first + 99}, true
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 32)
	last, err2 := strconv.ParseUint(to, 10, 32)
	ok := err1 == nil && err2 == nil && first <= last && last <= 999 && (first == 0 || first >= 100)
	return statusRange{int(first), int(last)}, ok
}

func parseKinds(list string) ([]string, error) {
	var out, known []string
	for _, k := range record.Kinds() {
		known = append(known, string(k))
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if !slices.Contains(known, item) {
			return nil, fmt.Errorf("--kind %q: there is no kind %q; there are %s", list, item, strings.Join(known, ", "))
		}
		out = append(out, item)
	}
	return out, nil
}
