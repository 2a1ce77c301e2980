package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete"
)

// Where a value comes from if it does not stand in the file.
const (
	FromDefault = "default"
	FromFlag    = "flag"
)

// Value is one setting that is in force.
type Value struct {
	// Path leads to it from the top of the file: providers, geo, timeout,
	// attempt. An entry of a list is its number in brackets: [0].
	Path []string
	// Value is a string, an int64, a float64, a bool or, for a list without entries, nil.
	// A secret is "***".
	Value any
	// Origin is FromDefault, FromFlag or the place as in "mete.yaml:14", with
	// the variables that were used there: "mete.yaml:14 ${API_KEY}".
	Origin string
	// Written says that the file has the value at this very path, not by
	// default and not under defaults.
	Written bool
}

// Values returns everything that is in force, also what the file does not say,
// in the order of the format and the providers in that of the file. flags are
// the settings that the caller has replaced in f since it was read, for each
// provider, as in "concurrency" or "timeout.attempt": their origin is FromFlag.
func (f *File) Values(flags ...string) []Value {
	s := &shown{file: f, flags: flags}
	if f.source != nil {
		s.decoder, s.root = f.source()
	}
	s.add(int64(f.Version), "version")
	if f.State.value != nil {
		s.add(s.text(f.State), "state")
	}
	s.settings(f.Defaults, "defaults")
	s.run(f.Run)
	s.lanes(f.Lanes)
	for i := range f.Providers {
		s.provider(&f.Providers[i])
	}
	return s.values
}

// shown gathers values.
type shown struct {
	file    *File
	decoder *decoder // nil if the file was not read
	root    *node
	flags   []string
	values  []Value
}

// find returns the node at path, or nil.
func (s *shown) find(path ...string) *node {
	n := s.root
	for _, step := range path {
		if n == nil {
			return nil
		}
		at := slices.IndexFunc(n.pairs, func(p pair) bool { return p.key.text == step })
		if at < 0 {
			return nil
		}
		n = n.pairs[at].value
	}
	return n
}

// add appends a value that stands at path, or for a provider under defaults.
func (s *shown) add(value any, path ...string) {
	s.append(Value{Path: path, Value: value, Origin: s.origin(s.written(path)), Written: s.find(path...) != nil})
}

// written is where the file says what holds at path: there, or for a provider
// under defaults. Nil is nowhere.
func (s *shown) written(path []string) *node {
	n := s.find(path...)
	if n == nil && path[0] == "providers" {
		n = s.find(append([]string{"defaults"}, path[2:]...)...)
	}
	return n
}

func (s *shown) append(v Value) {
	own := v.Path[min(len(v.Path), 1):]
	if v.Path[0] == "providers" {
		own = v.Path[2:]
	}
	for _, flag := range s.flags {
		if at := strings.Join(own, "."); at == flag || strings.HasPrefix(at, flag+".") {
			v.Origin, v.Written = FromFlag, true
		}
	}
	s.values = append(s.values, v)
}

func (s *shown) origin(n *node) string {
	if n == nil {
		return FromDefault
	}
	origin := s.decoder.name + ":" + strconv.Itoa(n.line)
	for _, m := range variable.FindAllStringSubmatch(strings.ReplaceAll(n.text, "$$", ""), -1) {
		name := m[1]
		if !strings.HasPrefix(name, "file:") {
			name, _, _ = strings.Cut(name, ":") // a default may be secret
		}
		origin += " ${" + name + "}"
	}
	return clean(origin)
}

// text is free text as it may be seen: a secret may also stand in plain text.
func (s *shown) text(t Secret) string { return s.file.Mask(t.String()) }

func (s *shown) settings(v Settings, at ...string) {
	s.concurrency(v.Concurrency, v.Adaptive, at)
	s.costs(v.Cost, at)
	s.timeout(v.Timeout, at)
	s.retry(v.Retry, at)
	s.retryOn(v.RetryOn, at)
	s.add(string(v.Learn), under(at, "headers_learn")...)
	s.classify(v.Classify, at)
	s.breaker(v.Breaker, at)
	s.queue(v.MaxWait, v.MaxQueue, v.MaxPause, at)
}

func (s *shown) provider(p *Provider) {
	at := []string{"providers", p.Name}
	s.add(s.text(p.URL), under(at, "url")...)
	if p.Auth.Header != "" {
		s.add(p.Auth.Header, under(at, "auth", "header")...)
	}
	if p.Auth.Query != "" {
		s.add(p.Auth.Query, under(at, "auth", "query")...)
	}
	if p.Auth.Value.value != nil {
		s.add(s.text(p.Auth.Value), under(at, "auth", "value")...)
	}
	for _, h := range p.Headers {
		s.add(s.text(h.Value), under(at, "headers", h.Name)...)
	}
	s.concurrency(p.Gate.Concurrency, p.Gate.Adaptive, at)
	s.limits(p, at)
	s.costs(p.Cost, at)
	s.timeout(p.Timeout, at)
	s.retry(p.Gate.Retry, at)
	s.retryOn(p.RetryOn, at)
	s.add(p.Idempotent, under(at, "idempotent")...)
	if p.Preset != "" {
		s.add(p.Preset, under(at, "preset")...)
	}
	s.add(string(p.Gate.Learn), under(at, "headers_learn")...)
	s.classify(p.Classify, at)
	s.breaker(p.Gate.Breaker, at)
	s.fallback(p.Fallback, at)
	s.queue(p.Gate.MaxWait, p.Gate.MaxQueue, p.MaxPause, at)
}

func (s *shown) timeout(t Timeout, at []string) {
	s.add(timeText(t.Connect), under(at, "timeout", "connect")...)
	s.add(timeText(t.TTFB), under(at, "timeout", "ttfb")...)
	s.add(timeText(t.Idle), under(at, "timeout", "idle")...)
	s.add(timeText(t.Attempt), under(at, "timeout", "attempt")...)
}

func (s *shown) retry(r mete.Retry, at []string) {
	budget := none
	if r.Budget > 0 {
		budget = percent(r.Budget)
	}
	s.add(int64(r.Attempts), under(at, "retry", "attempts")...)
	s.add(timeText(r.Base), under(at, "retry", "backoff", "base")...)
	s.add(timeText(r.Max), under(at, "retry", "backoff", "max")...)
	s.add(budget, under(at, "retry", "budget")...)
	s.add(r.KeepPermit, under(at, "retry", "keep_permit")...)
}

func (s *shown) queue(wait time.Duration, queue int, pause time.Duration, at []string) {
	if wait == 0 {
		wait = mete.DefaultMaxWait
	}
	s.add(timeText(max(wait, 0)), under(at, "max_wait")...)
	var bound any = int64(queue)
	if queue == 0 {
		bound = none
	}
	s.add(bound, under(at, "max_queue")...)
	s.add(timeText(pause), under(at, "max_pause")...)
}

// limits shows rate and burst as what they are: the first entry of limits.
func (s *shown) limits(p *Provider, at []string) {
	var nodes []*node
	rate := s.find(under(at, "rate")...)
	if rate != nil && rate.text != unlimited {
		nodes = append(nodes, rate)
	}
	list := s.find(under(at, "limits")...)
	if list != nil {
		nodes = append(nodes, list.items...)
	}
	if len(p.Gate.Limits) == 0 {
		where := list
		if rate != nil {
			where = rate
		}
		s.append(Value{Path: under(at, "limits"), Origin: s.origin(where), Written: where != nil})
	}
	for i, l := range p.Gate.Limits {
		var n *node
		if i < len(nodes) {
			n = nodes[i]
		}
		entry := &shown{decoder: s.decoder, root: n, flags: s.flags}
		add := func(key string, value any) {
			from := entry.find(key)
			if n != nil && n.kind != mapping && key == requests {
				from = n
			}
			if n == rate && n != nil && key == "burst" {
				from = s.find(under(at, "burst")...)
			}
			s.append(Value{
				Path:  under(at, "limits", "["+strconv.Itoa(i)+"]", key),
				Value: value, Origin: s.origin(from), Written: from != nil,
			})
		}
		limit(l, add)
	}
}

// limit gives add everything that a limit is.
func limit(l mete.Limit, add func(key string, value any)) {
	if l.Name != "" {
		add("name", l.Name)
	}
	unit := l.Unit
	if unit == "" {
		unit = requests
	}
	add(unit, l.String())
	if l.Oversize != "" {
		add("oversize", l.Oversize)
	}
	switch {
	case l.Calendar != "":
		zone := l.Zone
		if zone == "" {
			zone = "UTC"
		}
		add("window", "calendar")
		add("zone", zone)
		if l.Budget {
			add("budget", true)
		}
	case l.Bucket:
		add("burst", max(l.Burst, 1))
		add("bucket", true)
	default:
		margin := l.Margin
		if margin == 0 {
			margin = defaultMargin(l.Per)
		}
		add("burst", max(l.Burst, 1))
		add("window", "sliding")
		add("margin", timeText(margin))
	}
}

// defaultMargin is what the library takes for a Limit without a Margin.
func defaultMargin(per time.Duration) time.Duration {
	return min(max(per/150, 5*time.Millisecond), 50*time.Millisecond)
}

// under returns a path below at, in memory of its own.
func under(at []string, steps ...string) []string { return slices.Concat(at, steps) }

// timeText writes a time as in a file: 90s is 1m30s, and 0 is no bound.
func timeText(d time.Duration) string {
	if d == 0 {
		return none
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
