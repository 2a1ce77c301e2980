package quota

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sheet collects what the fields of one response say about each quota.
type sheet struct {
	fields
	profile  *profile
	now      time.Time // the client's clock
	server   time.Time // the server's clock at the same instant
	rows     map[rowKey]*row
	policies []policy // of the unnamed kind in RateLimit-Policy
}

// rowKey keeps independent limits apart: never the same quota in two families.
type rowKey struct{ family, dimension string }

// row is one quota while it is being collected.
type row struct {
	rowKey
	name, unit      string
	limits          []policy
	remaining, used count
	resets          [3]time.Time // relative, absolute, text: the first known counts
	window          time.Duration
	interval        time.Duration
	plain           bool // the name says nothing about the window
}

func newSheet(f fields, p *profile, now time.Time) *sheet {
	return &sheet{fields: f, profile: p, now: now, server: f.serverNow(now), rows: map[rowKey]*row{}}
}

func (s *sheet) row(family, dimension string) *row {
	key := rowKey{family, dimension}
	r := s.rows[key]
	if r == nil {
		r = &row{rowKey: key, name: cmp.Or(dimension, family)}
		s.rows[key] = r
	}
	return r
}

// prefixes of the families whose names are built from parts. The part between
// prefix and attribute, on either side of the attribute, is the dimension.
var prefixes = []string{"anthropic-ratelimit", "x-ratelimit", "x-rate-limit", "ratelimit"}

// attributes by their name, the longer of two with the same beginning first.
var attributes = []string{
	"limit", "remaining", "reset-after", "reset-time", "resettime", "reset", "used", "observed", "status",
	"interval", "duration", "resource", "bucket", "name",
}

// place is where a header field belongs.
type place struct {
	family, dimension, attribute string
	window                       time.Duration
}

// places are the names that are not built from parts.
// HubSpot: developers.hubspot.com changelog of 2018-11-06.
// Zendesk: developer.zendesk.com, best practices for avoiding rate limiting.
var places = map[string]place{
	"x-rate-limit":                              {"x-rate-limit", "", "limit", 0},
	"x-hubspot-ratelimit-daily":                 {"hubspot", "daily", "limit", 24 * time.Hour},
	"x-hubspot-ratelimit-daily-remaining":       {"hubspot", "daily", "remaining", 24 * time.Hour},
	"x-hubspot-ratelimit-secondly":              {"hubspot", "secondly", "limit", time.Second},
	"x-hubspot-ratelimit-secondly-remaining":    {"hubspot", "secondly", "remaining", time.Second},
	"x-hubspot-ratelimit-max":                   {"hubspot", "interval", "limit", 0},
	"x-hubspot-ratelimit-remaining":             {"hubspot", "interval", "remaining", 0},
	"x-hubspot-ratelimit-interval-milliseconds": {"hubspot", "interval", "interval-ms", 0},
}

// placeOf takes a lower-case field name apart.
func placeOf(name string) (place, bool) {
	if p, ok := places[name]; ok {
		return p, true
	}
	for _, family := range prefixes {
		rest, ok := strings.CutPrefix(name, family+"-")
		if !ok {
			continue
		}
		for _, a := range attributes {
			if rest == a {
				return place{family: family, attribute: a}, true
			}
			if dimension, ok := strings.CutPrefix(rest, a+"-"); ok {
				return place{family: family, dimension: dimension, attribute: a}, true
			}
			if dimension, ok := strings.CutSuffix(rest, "-"+a); ok {
				return place{family: family, dimension: dimension, attribute: a}, true
			}
		}
	}
	return place{}, false
}

// readFamilies reads the header families in which each field is one attribute.
func (s *sheet) readFamilies() {
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		p, ok := placeOf(field)
		if !ok {
			continue
		}
		r := s.row(p.family, p.dimension)
		if p.window > 0 {
			r.window = p.window
		}
		switch p.attribute {
		case "limit":
			s.readCounts(field, func(n policy) { r.limits = append(r.limits, n) })
		case "remaining":
			s.readCounts(field, func(n policy) {
				r.remaining = minCount(r.remaining, n.limit)
				r.window = max(r.window, n.window)
			})
		case "used", "observed":
			s.readCounts(field, func(n policy) { r.used = minCount(r.used, n.limit) })
		case "reset-after":
			s.readReset(field, &r.resets[0], func(v string) (time.Duration, bool) { return parseDelta(v, time.Second) })
		case "reset":
			s.readReset(field, &r.resets[1], s.resetDelay)
		case "reset-time", "resettime":
			s.readReset(field, &r.resets[2], s.resetDelay)
		case "status":
			// Subscriptions of Anthropic say only whether there is room.
			if isUnified(p.dimension) && slices.Contains(s.members(field), "rejected") {
				r.remaining = countOf(0)
			}
		case "interval", "duration":
			r.readInterval(s.members(field), time.Second)
		case "interval-ms":
			r.readInterval(s.members(field), time.Millisecond)
		case "resource", "bucket", "name":
			if lines := s.fields[field]; p.dimension == "" && len(lines) > 0 {
				r.name = cmp.Or(unquote(trim(lines[0])), r.name)
			}
		}
	}
}

// isUnified reports whether a dimension is "unified" or "unified-5h"; there is
// also "unified-overage", which does not bound the subscription.
func isUnified(dimension string) bool {
	return dimension == "unified" || strings.HasPrefix(dimension, "unified-") && periodOf(dimension) > 0
}

// readCounts gives each valid member of a field: a number that may carry a
// window, as in "100;w=60".
func (s *sheet) readCounts(field string, each func(policy)) {
	lines := slices.DeleteFunc(slices.Clone(s.fields[field]), func(l string) bool { return isGrouped(unquote(trim(l))) })
	for _, m := range (fields{field: lines}).members(field) {
		value, params, _ := strings.Cut(m, ";")
		n := policy{limit: parseCount(unquote(trim(value)))}
		if !n.limit.known {
			continue
		}
		for _, p := range strings.Split(params, ";") {
			if w, ok := strings.CutPrefix(trim(p), "w="); ok {
				n.window = parseWindow(w)
			}
		}
		each(n)
	}
}

func (s *sheet) resetDelay(v string) (time.Duration, bool) {
	return parseReset(v, cmp.Or(s.profile.resetUnit, time.Second), s.server)
}

func (s *sheet) readReset(field string, reset *time.Time, parse func(string) (time.Duration, bool)) {
	for _, m := range s.members(field) {
		m, _, _ = strings.Cut(m, ";")
		if d, ok := parse(trim(m)); ok {
			*reset = later(*reset, s.now.Add(d))
		}
	}
}

func (r *row) readInterval(members []string, unit time.Duration) {
	for _, m := range members {
		if d, ok := parseSpan(m, unit); ok {
			r.interval = max(r.interval, d)
		}
	}
}

// quotas turns the rows into quotas, sorted by name.
func (s *sheet) quotas() []Quota {
	order := slices.SortedFunc(maps.Keys(s.rows), func(a, b rowKey) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.dimension, b.dimension))
	})
	var list []Quota
	for _, key := range order {
		list = append(list, s.finish(s.rows[key])...)
	}
	for _, p := range s.policies {
		list = append(list, policyQuota("ratelimit", p)...)
	}
	slices.SortStableFunc(list, func(a, b Quota) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// finish turns a row into its quota and those of its further policies.
func (s *sheet) finish(r *row) []Quota {
	main, more := splitPolicies(r.limits)
	if main.window == 0 {
		main.window = takeWindow(&more, main.limit)
	}
	if main.window == 0 && !r.plain && r.dimension == "" {
		main.window = takeWindow(&s.policies, main.limit)
	}
	var usual time.Duration
	if !r.plain {
		usual = cmp.Or(periodOf(r.dimension), r.interval, s.profile.window(r.name))
	}
	q := Quota{
		Name:   r.name,
		Unit:   cmp.Or(r.unit, s.profile.unitOf(r.name)),
		Window: cmp.Or(main.window, r.window, usual),
		Bucket: s.profile.bucket && !isUnified(r.dimension),
	}
	for _, t := range slices.Backward(r.resets[:]) {
		if !t.IsZero() {
			q.Reset = t
		}
	}
	var list []Quota
	if settle(&q, main.limit, r.remaining, r.used) {
		list = append(list, q)
	}
	for _, p := range more {
		list = append(list, policyQuota(r.name, p)...)
	}
	return list
}

// splitPolicies finds the limit that the other fields of its family are about:
// the one without a window, else the first. Draft 03 of the IETF fields lists
// further policies behind it.
func splitPolicies(all []policy) (main policy, more []policy) {
	for _, p := range all {
		at := slices.IndexFunc(more, func(m policy) bool { return m.window == p.window })
		switch {
		case p.window == 0 && main.limit.known && main.limit.negative != p.limit.negative:
			if main.limit.negative { // "unknown" next to a number
				main.limit = p.limit
			}
		case p.window == 0:
			main.limit = minCount(main.limit, p.limit)
		case at >= 0:
			more[at].limit = minCount(more[at].limit, p.limit)
		default:
			more = append(more, p)
		}
	}
	if !main.limit.known && len(more) > 0 {
		main, more = more[0], more[1:]
	}
	return main, more
}

// takeWindow removes the first policy with this limit and returns its window.
func takeWindow(policies *[]policy, limit count) time.Duration {
	for i, p := range *policies {
		if limit.known && !p.limit.less(limit) && !limit.less(p.limit) {
			*policies = slices.Delete(*policies, i, i+1)
			return p.window
		}
	}
	return 0
}

// policyQuota is a policy about which nothing but itself is known.
func policyQuota(family string, p policy) []Quota {
	name := family + ";w=" + strconv.FormatInt(int64(p.window/time.Second), 10)
	q := Quota{Name: name, Unit: commonUnit(family), Window: p.window}
	if !settle(&q, p.limit, count{}, count{}) {
		return nil
	}
	return []Quota{q}
}
