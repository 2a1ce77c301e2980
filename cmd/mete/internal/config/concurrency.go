package config

import (
	"strings"

	"github.com/metehq/mete/adaptive"
)

// automatic are the words for a concurrency that mete finds.
var automatic = map[string]adaptive.Algorithm{"auto": adaptive.Knee, "aimd": adaptive.AIMD}

// concurrency decodes a number, 0 (paused), unlimited, or how to find it.
func (d *decoder) concurrency(n *node, to *Settings) {
	algorithm, auto := automatic[n.text]
	switch {
	case n.kind == mapping:
		if a := d.adaptive(n); a != nil {
			to.Adaptive = a
		}
		return
	case n.kind == text && auto:
		to.Adaptive = &adaptive.Config{Algorithm: algorithm}
		return
	case n.kind == text && n.text == unlimited:
		to.Concurrency, to.Adaptive = 0, nil
		return
	case n.kind == text && !strings.Contains(n.text, "${") && !wholeNumber.MatchString(n.text):
		d.errorf(n, "concurrency must be a whole number, auto or unlimited, not %q", n.text)
		return
	}
	c, ok := d.count(n, "concurrency", 0)
	if !ok {
		return
	}
	if c == 0 {
		d.warnf(n, "concurrency 0 pauses: nothing will be sent; write unlimited for no bound")
		c = -1 // to the library 0 means no bound
	}
	to.Concurrency, to.Adaptive = c, nil
}

// adaptive decodes how the number is found.
func (d *decoder) adaptive(n *node) *adaptive.Config {
	s := d.section(n, "adaptive", "concurrency")
	if s == nil {
		return nil
	}
	a := &adaptive.Config{Algorithm: adaptive.Knee}
	if at := s["auto"]; at != nil {
		on, ok := d.truth(at, "auto")
		if ok && !on {
			d.errorf(at, "auto: false with other keys says nothing: write concurrency: 16, or auto: true")
		}
	}
	if at := s["algorithm"]; at != nil {
		word := string(a.Algorithm)
		d.oneOf(at, "algorithm", algorithmWords, &word)
		a.Algorithm = adaptive.Algorithm(word)
	}
	for _, k := range []struct {
		key string
		to  *int
	}{{"min", &a.Min}, {"max", &a.Max}, {"initial", &a.Initial}} {
		if at := s[k.key]; at != nil {
			set(k.to)(d.count(at, k.key, 1))
		}
	}
	if err := a.Check(); err != nil {
		d.errorf(n, "%s", strings.TrimPrefix(err.Error(), "adaptive: "))
		return nil
	}
	return a
}

// algorithmWords are the ways to find a concurrency.
var algorithmWords = []string{string(adaptive.Knee), string(adaptive.Failures), string(adaptive.AIMD)}

// concurrency shows the number, or how it is found.
func (s *shown) concurrency(c int, a *adaptive.Config, at []string) {
	if a != nil {
		least, most := a.Bounds()
		s.add(true, under(at, "concurrency", "auto")...)
		s.add(string(a.Algorithm), under(at, "concurrency", "algorithm")...)
		s.add(int64(least), under(at, "concurrency", "min")...)
		s.add(int64(most), under(at, "concurrency", "max")...)
		if a.Initial > 0 {
			s.add(int64(a.Initial), under(at, "concurrency", "initial")...)
		}
		return
	}
	var v any = int64(max(c, 0)) // -1 pauses, which the file calls 0
	if c == 0 {
		v = unlimited
	}
	s.add(v, under(at, "concurrency")...)
}
