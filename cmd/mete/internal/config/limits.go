package config

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a static binary in an empty image has no zones to check

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cost"
)

// unlimited is the word for no limit, where leaving the line out says the same.
const unlimited = "unlimited"

var oversizeWords = []string{"alone"}

// placed is a limit and where it stands, for the checks across limits.
type placed struct {
	mete.Limit
	at *node
}

// limits decodes rate, burst and limits of a provider.
func (d *decoder) limits(s section, provider string) []mete.Limit {
	var all []placed
	open := false
	if n := s["rate"]; n != nil {
		if n.kind == text && n.text == unlimited {
			open = true
		} else if l, ok := d.rate(n, "rate"); ok {
			all = append(all, placed{l, n})
		}
	}
	if n := s["burst"]; n != nil {
		if b, ok := d.burst(n); ok {
			if len(all) > 0 {
				all[0].Burst = b
			} else if !s.has("rate") || open {
				d.errorf(n, "burst without a rate: write rate: 50/s beside it, or put it into an entry of limits")
			}
		}
	}
	if n := s["limits"]; n != nil && d.is(n, list, "limits", "[50/s, 1000/h]") {
		if open && len(n.items) > 0 {
			d.errorf(s["rate"], "rate is unlimited, but limits has some: remove one of the two")
		}
		for _, item := range n.items {
			if l, ok := d.limit(item, provider); ok {
				all = append(all, placed{l, item})
			}
		}
	}
	d.clashes(all)
	d.hints(all, provider)
	limits := make([]mete.Limit, len(all))
	for i, l := range all {
		limits[i] = l.Limit
	}
	return limits
}

// limit decodes one entry of limits: "50/s" or a mapping.
func (d *decoder) limit(n *node, provider string) (mete.Limit, bool) {
	switch n.kind {
	case empty:
		d.errorf(n, "an empty entry: write 50/s or remove it")
		return mete.Limit{}, false
	case refused:
		return mete.Limit{}, false
	case mapping:
	default:
		return d.rate(n, "a limit")
	}
	before := len(d.errs)
	var units []pair
	rated := slices.ContainsFunc(n.pairs, func(p pair) bool { return strings.Contains(p.value.text, "/") })
	s := d.sectionWith(n, "limit", "providers."+provider+".limits", func(p pair) bool {
		// Any other word with a rate behind it is a unit, and a number is meant
		// to be one where nothing else is.
		if !strings.ContainsAny(p.value.text, "/$") && (rated || p.value.kind != number) || nearest(p.key.text, names("limit")) != "" || p.key.text == "rate" {
			return false
		}
		units = append(units, p)
		return true
	})
	if r := s[requests]; r != nil {
		units = append(units, pair{&node{text: requests, line: r.line, col: r.col}, r})
	}
	if len(units) != 1 {
		if len(units) == 0 && len(d.errs) == before {
			d.errorf(n, "a limit needs a rate: write {requests: 50/s}")
		}
		for i := 1; i < len(units); i++ {
			d.errorf(units[i].key, "a limit counts one unit: give %q an entry of its own", units[i].key.text)
		}
		return mete.Limit{}, false
	}
	unit := units[0]
	var l mete.Limit
	calendar := false
	if at := s["window"]; at != nil {
		w, ok := d.word(at, "window")
		calendar = w == "calendar"
		if ok && !calendar && w != "sliding" {
			d.errorf(at, "window must be sliding or calendar, not %q", w)
		}
	}
	if calendar {
		l, _ = d.calendar(unit.value, unit.key.text)
	} else {
		l, _ = d.rate(unit.value, unit.key.text)
	}
	if unit.key.text != requests {
		l.Unit = unit.key.text
		if !cost.UnitName.MatchString(l.Unit) {
			d.errorf(unit.key, "%q cannot be a unit: use up to 64 letters, digits and '_'", l.Unit)
		}
	}
	d.shape(s, &l, calendar)
	return l, len(d.errs) == before
}

// shape decodes what a limit has besides its rate.
func (d *decoder) shape(s section, l *mete.Limit, calendar bool) {
	if at := s["name"]; at != nil {
		name, ok := d.word(at, "name")
		l.Name = name
		if ok && !limitName.MatchString(name) {
			d.errorf(at, "%q cannot be a limit's name: use up to 64 letters, digits, '-', '_' and '.'", name)
		}
	}
	if at := s["bucket"]; at != nil {
		l.Bucket, _ = d.truth(at, "bucket")
		if l.Bucket && calendar {
			d.errorf(at, "a limit is either a bucket or a calendar window")
		}
	}
	if at := s["burst"]; at != nil {
		if b, ok := d.burst(at); ok {
			l.Burst = b
		}
		if calendar {
			d.errorf(at, "a calendar window has no burst: it is a plain counter")
		} else if !l.Bucket && l.N > 0 && l.Burst > l.N {
			d.warnf(at, "a burst of %d is never reached: the limit is %s", l.Burst, l)
		}
	}
	if l.Bucket && l.Unit != "" && !s.has("burst") {
		d.errorf(s["bucket"], "a bucket of %s needs a burst, which is how many it holds: burst: %d", l.Unit, max(l.N, 1))
	}
	if at := s["oversize"]; at != nil {
		d.oneOf(at, "oversize", oversizeWords, &l.Oversize)
		if calendar {
			d.errorf(at, "a calendar window cannot be exceeded: it is a plain counter")
		}
	}
	if at := s["margin"]; at != nil {
		set(&l.Margin)(d.duration(at, "margin", false))
		if calendar || l.Bucket {
			d.errorf(at, "only a sliding window has a margin")
		}
	}
	if at := s["budget"]; at != nil {
		l.Budget, _ = d.truth(at, "budget")
		if l.Budget && !calendar {
			d.errorf(at, "a budget needs window: calendar beside it")
		}
	}
	if at := s["zone"]; at != nil {
		zone, ok := d.word(at, "zone")
		if !ok {
			return
		}
		if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
			d.errorf(at, "%q is not a time zone: write UTC or one as in America/Los_Angeles", zone)
		} else if !calendar {
			d.errorf(at, "zone needs window: calendar beside it")
		}
		l.Zone = zone
	}
}

// rate decodes "50/s". A bare 0 blocks, as 0/s does.
func (d *decoder) rate(n *node, what string) (mete.Limit, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return mete.Limit{}, false
	}
	s := strings.TrimSpace(v.s)
	if s == unlimited {
		d.errorf(n, "%s is unlimited: remove the line", what)
		return mete.Limit{}, false
	}
	if strings.HasPrefix(s, "-") {
		d.errorf(n, "%s must not be negative", what)
		return mete.Limit{}, false
	}
	if s == "0" {
		s = "0/s"
	}
	if _, per, _ := strings.Cut(s, "/"); strings.TrimSpace(per) == "month" {
		d.errorf(n, "a month has no fixed length: add window: calendar, or write 30d")
		return mete.Limit{}, false
	}
	l, err := mete.ParseRate(s)
	if err != nil {
		message := err.Error()
		if v.tainted {
			message = "not a rate: ***: write a number per period: 50/s, 50/m, 50/h, 50/d or 50/15s"
		}
		d.errorf(n, "%s", message)
		return mete.Limit{}, false
	}
	l.Burst = 1 // the library's default, written out so that it is shown
	return l, true
}

// calendar decodes the rate of a calendar window: per day or per month.
func (d *decoder) calendar(n *node, what string) (mete.Limit, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return mete.Limit{}, false
	}
	num, per, _ := strings.Cut(v.s, "/")
	period := "day"
	if strings.TrimSpace(per) == "month" {
		period, per = "month", "d"
	}
	l, err := mete.ParseRate(num + "/" + per)
	if err != nil || l.Per != 24*time.Hour {
		d.errorf(n, "a calendar window is per day or month, not %s: write 10000/d or 300000/month", v.shown())
		return mete.Limit{}, false
	}
	return mete.Limit{N: l.N, Calendar: period, Burst: 1}, true
}

func (d *decoder) burst(n *node) (int64, bool) {
	b, ok := d.count(n, "burst", 1)
	return int64(b), ok
}

// clashes reports limits that errors and statistics could not tell apart.
func (d *decoder) clashes(all []placed) {
	first := map[string]*node{}
	for _, l := range all {
		name := l.Name
		if name == "" {
			name = l.String()
		}
		if at := first[name]; at != nil {
			d.errorf(l.at, "a limit %q is already on line %d: give this one another name", name, at.line)
			continue
		}
		first[name] = l.at
	}
}
