package config

import (
	"strconv"
	"time"

	"github.com/metehq/mete/breaker"
)

// breaker decodes when to stop calling a provider that fails.
func (d *decoder) breaker(n *node, where string) (b breaker.Config) {
	s := d.section(n, "breaker", where)
	if s == nil {
		return b
	}
	b = breaker.Config{Window: 10 * time.Second, Calls: 10, Open: 5 * time.Second, Probes: 1}
	if at := s["failures"]; at != nil {
		var ok bool
		if b.Failures, ok = d.share(at, "failures"); ok && b.Failures == 0 {
			d.errorf(at, "failures is none: remove breaker for no breaker")
		}
	} else if !s.has("failures") {
		d.errorf(n, "breaker does not say when it opens: add failures: 50%%")
	}
	if at := s["window"]; at != nil {
		set(&b.Window)(d.duration(at, "window", false))
	}
	if at := s["calls"]; at != nil {
		set(&b.Calls)(d.count(at, "calls", 1))
	}
	if at := s["open"]; at != nil {
		set(&b.Open)(d.duration(at, "open", false))
	}
	if at := s["probes"]; at != nil {
		set(&b.Probes)(d.count(at, "probes", 1))
	}
	return b
}

// breaker shows a breaker, if there is one.
func (s *shown) breaker(b breaker.Config, at []string) {
	if b.Failures == 0 {
		return
	}
	add := func(key string, v any) { s.add(v, under(at, "breaker", key)...) }
	add("failures", percent(b.Failures))
	add("window", timeText(b.Window))
	add("calls", int64(b.Calls))
	add("open", timeText(b.Open))
	add("probes", int64(b.Probes))
}

// percent writes a share as in a file.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 12, 64) + "%" }
