package results

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Group says what records are grouped by.
type Group string

// The groups.
const (
	NoGroup    Group = ""
	ByProvider Group = "provider" // an attempt counts for the provider it was sent to
	ByStatus   Group = "status"
	ByHost     Group = "host"
)

// Bounds on what a hostile or odd file can make Stats remember; what comes
// later is summed up as "other".
const (
	maxGroups = 256
	maxKinds  = 64
	maxBounds = 64
	maxRuns   = 1 << 16
	other     = "other"
)

// Stats is what result files tell about the calls.
type Stats struct {
	Files   []string
	By      Group
	Total   *Totals
	Groups  []*Totals // in order of first appearance
	Runs    int64
	FirstAt int64 // ms since 1970; math.MaxInt64 if unknown
	LastEnd int64
	groups  map[string]*Totals
	runs    map[string]bool
}

// Totals sum up records.
type Totals struct {
	Name        string
	Records, OK int64
	Statuses    map[int]int64
	Kinds       map[string]*Kind
	Attempts    int64 // also of records without tries
	Retries     int64
	Throttled   int64 // attempts answered with 429
	Bytes       int64
	Truncated   int64
	Waits       map[string]float64 // seconds by bound
	Costs       map[string]Cost    // by unit
	latency     latencies
	starts      starts
}

// Latency is how long attempts took on the wire.
func (t *Totals) Latency() progress.Quantiles { return t.latency.quantiles() }

// Cost is what records cost in one unit: what they were taken to, and what they
// did.
type Cost struct{ Estimate, True float64 }

// Kind counts the records with one kind of error and names the first.
type Kind struct {
	Count         int64
	Example, File string
	Line          int64
}

// Collect reads the files once. Every record counts, also one that a later
// record of its row made obsolete. Memory: two bytes an attempt (four with
// groups), 40 KB a group, and nothing else that grows with the files.
func Collect(in *Input, by Group) (*Stats, error) {
	switch by {
	case NoGroup, ByProvider, ByStatus, ByHost:
	default:
		return nil, fmt.Errorf("--by %q: want provider, status or host", by)
	}
	s := &Stats{
		By: by, Total: newTotals(""), FirstAt: math.MaxInt64, LastEnd: math.MinInt64,
		groups: map[string]*Totals{}, runs: map[string]bool{},
	}
	for _, path := range in.Paths {
		s.Files = append(s.Files, nameOf(path))
	}
	var e entry
	err := in.each(func(l *line) error {
		if err := e.read(l.text, by == ByHost); err != nil {
			return l.fail(err)
		}
		s.add(l, &e)
		return nil
	})
	return s, err
}

func newTotals(name string) *Totals {
	return &Totals{Name: name, Statuses: map[int]int64{}, Kinds: map[string]*Kind{}, Waits: map[string]float64{}, Costs: map[string]Cost{}}
}

func (s *Stats) group(name string) *Totals {
	if g := s.groups[name]; g != nil {
		return g
	}
	if len(s.Groups) >= maxGroups-1 {
		name = other
		if g := s.groups[name]; g != nil {
			return g
		}
	}
	g := newTotals(name)
	s.groups[name] = g
	s.Groups = append(s.Groups, g)
	return g
}

func (s *Stats) add(l *line, e *entry) {
	if len(s.runs) < maxRuns {
		s.runs[string(e.run)] = true
		s.Runs = int64(len(s.runs))
	}
	s.FirstAt = min(s.FirstAt, e.at)
	if e.end != math.MaxInt64 {
		s.LastEnd = max(s.LastEnd, e.end)
	}
	s.Total.record(l, e)
	for _, t := range e.tries {
		s.Total.try(t)
	}
	if s.By == NoGroup {
		return
	}
	g := s.group(e.group(s.By))
	g.record(l, e)
	for _, t := range e.tries {
		if s.By == ByProvider && t.provider != "" && t.provider != g.Name && g.Name != other {
			s.group(t.provider).try(t)
			continue
		}
		g.try(t)
	}
}

func (t *Totals) record(l *line, e *entry) {
	t.Records++
	if l.head.OK {
		t.OK++
	}
	t.Statuses[e.status]++
	t.Bytes += e.bytes
	if e.truncated {
		t.Truncated++
	}
	t.Retries += max(e.attempts-1, 0)
	if len(e.tries) == 0 {
		t.Attempts += e.attempts
	}
	if e.kind != "" {
		k := t.Kinds[e.kind]
		if k == nil {
			kind := e.kind
			if len(t.Kinds) >= maxKinds {
				kind = other
			}
			if k = t.Kinds[kind]; k == nil {
				k = &Kind{Example: string(l.head.ID), File: l.name, Line: l.number}
				t.Kinds[kind] = k
			}
		}
		k.Count++
	}
	for _, w := range e.waits {
		if _, ok := t.Waits[w.bound]; !ok && len(t.Waits) >= maxBounds {
			w.bound = other
		}
		t.Waits[w.bound] += w.d.Seconds()
	}
	for _, c := range e.costs {
		if _, ok := t.Costs[c.Unit]; !ok && len(t.Costs) >= maxBounds {
			c.Unit = other
		}
		sum := t.Costs[c.Unit]
		t.Costs[c.Unit] = Cost{sum.Estimate + c.Estimate, sum.True + c.True}
	}
	if e.latency > 0 {
		t.latency.add(e.latency)
	}
}

func (t *Totals) try(a attempt) {
	t.Attempts++
	if a.status == 429 {
		t.Throttled++
	}
	if a.at != math.MaxInt64 {
		t.starts.add(a.at)
	}
}

// entry is what Stats needs of one record.
type entry struct {
	status          int
	attempts, bytes int64
	truncated       bool
	latency         time.Duration
	at, end         int64
	kind, bound     string
	provider, host  string
	run             []byte
	tries           []attempt
	waits           []wait // without the limiter's
	limiter         time.Duration
	costs           []record.Cost
}

type attempt struct {
	at       int64
	status   int
	provider string
}

type wait struct {
	bound string
	d     time.Duration
}

func (e *entry) group(by Group) string {
	switch by {
	case ByProvider:
		return e.provider
	case ByStatus:
		if e.status == 0 {
			return "none"
		}
		return strconv.Itoa(e.status)
	}
	return e.host
}

func (e *entry) read(text []byte, host bool) error {
	*e = entry{tries: e.tries[:0], waits: e.waits[:0], at: math.MaxInt64, end: math.MaxInt64}
	err := members(text, func(name, value []byte) error {
		if err := e.member(string(name), value, host); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if e.limiter > 0 {
		bound := "limit"
		if strings.HasPrefix(e.bound, "limit:") {
			bound = e.bound
		}
		e.waits = append(e.waits, wait{bound, e.limiter})
	}
	return nil
}

func (e *entry) member(name string, value []byte, host bool) (err error) {
	switch name {
	case "status":
		err = integerInto(&e.status, value)
	case "attempts":
		err = integerInto(&e.attempts, value)
	case "body_bytes":
		err = integerInto(&e.bytes, value)
	case "truncated":
		e.truncated = string(value) == "true"
	case "latency_ms":
		e.latency, err = milliseconds(value)
	case "at":
		e.at, err = when(value)
	case "end":
		e.end, err = when(value)
	case "provider":
		e.provider, err = text(value)
	case "bound":
		e.bound, err = text(value)
	case "url":
		if host {
			e.host, err = hostOf(value)
		}
	case "run":
		e.run = value
	case "error":
		e.kind, err = kindOf(value)
	case "cost":
		e.costs, err = record.DecodeCosts(value)
	case "waits_ms":
		err = e.readWaits(value)
	case "tries":
		if !isNull(value) {
			err = elements(value, func(_ int, v []byte) error { return e.readTry(v) })
		}
	}
	return err
}

func (e *entry) readWaits(value []byte) error {
	if isNull(value) {
		return nil
	}
	return members(value, func(name, v []byte) error {
		d, err := milliseconds(v)
		switch {
		case err != nil:
			return err
		case d <= 0 || string(name) == "queue": // the sum of the others
		case string(name) == "limiter":
			e.limiter = d
		default:
			e.waits = append(e.waits, wait{string(name), d})
		}
		return nil
	})
}

func (e *entry) readTry(value []byte) error {
	t := attempt{at: math.MaxInt64}
	err := members(value, func(name, v []byte) (err error) {
		switch string(name) {
		case "at":
			t.at, err = when(v)
		case "status":
			err = integerInto(&t.status, v)
		case "provider":
			if t.provider = e.provider; `"`+e.provider+`"` != string(v) {
				t.provider, err = text(v)
			}
		}
		return err
	})
	e.tries = append(e.tries, t)
	return err
}

func hostOf(value []byte) (string, error) {
	s, err := text(value)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "unknown", nil
	}
	return u.Host, nil
}

func milliseconds(value []byte) (time.Duration, error) {
	ms, err := number(value)
	if err == nil && math.Abs(ms) > float64(math.MaxInt64)/1e6 {
		err = errors.New("longer than 292 years")
	}
	return time.Duration(ms * 1e6), err
}

func integerInto[T int | int64](to *T, value []byte) error {
	if isNull(value) {
		*to = 0
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return errors.New("not an integer")
	}
	*to = T(n)
	return nil
}
