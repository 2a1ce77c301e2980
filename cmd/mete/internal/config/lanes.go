package config

import (
	"strconv"
	"strings"

	"github.com/metehq/mete"
)

// lanes decodes the orders of service that rows choose between.
func (d *decoder) lanes(n *node) []mete.Lane {
	if !d.is(n, mapping, "lanes", "{urgent: {weight: 4}, bulk: {weight: 1}}") {
		return nil
	}
	if len(n.pairs) == 0 {
		d.errorf(n, "lanes is empty: it needs at least one")
	}
	var all []mete.Lane
	seen := map[string]*node{}
	reserved := 0.0
	for _, p := range n.pairs {
		name := p.key.text
		if p.key.kind == refused || p.value.kind == refused {
			continue
		}
		if first := seen[name]; first != nil {
			d.errorf(p.key, "lane %q is already on line %d", name, first.line)
			continue
		}
		seen[name] = p.key
		if !limitName.MatchString(name) {
			d.errorf(p.key, "%q cannot be a lane's name: use up to 64 letters, digits, '-', '_' and '.'", name)
		}
		l := mete.Lane{Name: name, Weight: 1}
		if p.value.kind != empty {
			d.lane(p.value, &l)
		}
		if reserved += l.Reserve; reserved > 1+1e-9 && reserved-l.Reserve <= 1+1e-9 {
			d.errorf(p.key, "the lanes up to this one reserve %s of the permits: keep them within 100%%", percent(reserved))
		}
		all = append(all, l)
	}
	return all
}

func (d *decoder) lane(n *node, l *mete.Lane) {
	s := d.section(n, "lane", "lanes."+l.Name)
	if at := s["weight"]; at != nil {
		l.Weight = d.weight(at)
	}
	if at := s["reserve"]; at != nil {
		set(&l.Reserve)(d.share(at, "reserve"))
	}
	if at := s["cap"]; at != nil {
		set(&l.Cap)(d.share(at, "cap"))
	}
	if at := s["max_queue"]; at != nil {
		set(&l.MaxQueue)(d.count(at, "max_queue", 1))
	}
	if at := s["max_wait"]; at != nil {
		set(&l.MaxWait)(d.duration(at, "max_wait", false))
	}
}

func (d *decoder) weight(n *node) float64 {
	v, ok := d.scalar(n, "weight")
	if !ok {
		return 1
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(v.s), 64)
	if err != nil || !(w >= 0.001 && w <= 1000) {
		d.errorf(n, "weight must be a number from 0.001 to 1000, not %s", v.shown())
		return 1
	}
	return w
}

// lanes shows what the file says of them.
func (s *shown) lanes(lanes []mete.Lane) {
	for _, l := range lanes {
		add := func(key string, v any) { s.add(v, "lanes", l.Name, key) }
		add("weight", l.Weight)
		if l.Reserve > 0 {
			add("reserve", percent(l.Reserve))
		}
		if l.Cap > 0 {
			add("cap", percent(l.Cap))
		}
		if l.MaxQueue > 0 {
			add("max_queue", int64(l.MaxQueue))
		}
		if l.MaxWait > 0 {
			add("max_wait", timeText(l.MaxWait))
		}
	}
}
