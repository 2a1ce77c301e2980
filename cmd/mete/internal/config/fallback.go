package config

import (
	"slices"
	"strconv"
	"strings"
)

// fallbacks decodes the key fallback of all providers, once their names are
// known. n is the mapping of the providers.
func (d *decoder) fallbacks(n *node, f *File) {
	for _, p := range n.pairs {
		if p.value.kind != mapping {
			continue
		}
		to := f.Provider(p.key.text)
		for _, key := range p.value.pairs {
			if key.key.text == "fallback" && to != nil && to.Fallback == nil {
				to.Fallback = d.fallback(key.value, to.Name, f)
			}
		}
	}
	for i := range f.Providers {
		d.fallbackLoop(n, f, &f.Providers[i])
	}
}

// fallback decodes the list of one provider.
func (d *decoder) fallback(n *node, of string, f *File) []string {
	if n.kind == empty || n.kind == refused || !d.is(n, list, "fallback", "[other]") {
		return nil
	}
	var names []string
	for _, item := range n.items {
		if item.kind == refused {
			continue
		}
		name, ok := d.word(item, "an entry of fallback")
		switch {
		case !ok:
		case name == of:
			d.errorf(item, "fallback loop: %s -> %s", of, of)
		case f.Provider(name) == nil:
			var all []string
			for _, p := range f.Providers {
				all = append(all, p.Name)
			}
			hint := " (known here: " + strings.Join(all, ", ") + ")"
			if best := nearest(name, all); best != "" && len(name) > 2 {
				hint = ` (did you mean "` + best + `"?)`
			}
			d.errorf(item, "fallback %q is not a provider of this file%s", name, hint)
		case slices.Contains(names, name):
			d.errorf(item, "fallback %q is there already", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// fallbackLoop reports a way through fallbacks that leads back to p, at the
// entry that closes it. Each loop is reported once, from the first of its
// providers in the file.
func (d *decoder) fallbackLoop(n *node, f *File, p *Provider) {
	place := func(name string) int {
		return slices.IndexFunc(f.Providers, func(o Provider) bool { return o.Name == name })
	}
	first := place(p.Name)
	seen := map[string]bool{}
	var walk func(at *Provider, path []string) bool
	walk = func(at *Provider, path []string) bool {
		for _, next := range at.Fallback {
			if next == p.Name {
				d.errorf(fallbackEntry(n, at.Name, next), "fallback loop: %s", strings.Join(append(path, next), " -> "))
				return true
			}
			if seen[next] || place(next) < first {
				continue
			}
			seen[next] = true
			if walk(f.Provider(next), append(slices.Clone(path), next)) {
				return true
			}
		}
		return false
	}
	walk(p, []string{p.Name})
}

// fallbackEntry is where a provider names another as its fallback.
func fallbackEntry(n *node, of, name string) *node {
	for _, p := range n.pairs {
		if p.key.text != of {
			continue
		}
		for _, key := range p.value.pairs {
			if key.key.text != "fallback" {
				continue
			}
			for _, item := range key.value.items {
				if item.text == name {
					return item
				}
			}
		}
	}
	return n
}

func (s *shown) fallback(names []string, at []string) {
	where := s.find(under(at, "fallback")...)
	for i, name := range names {
		var n *node
		if where != nil && i < len(where.items) {
			n = where.items[i]
		}
		s.append(Value{Path: under(at, "fallback", "["+strconv.Itoa(i)+"]"), Value: name, Origin: s.origin(n), Written: n != nil})
	}
}
