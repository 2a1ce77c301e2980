package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/sizing"
)

// CheckLatency warns of each provider whose concurrency is too low for its rate
// if a request takes latency on average: by Little's law the requests in flight
// are rate x latency. The rate is that of the shortest window or bucket, which
// paces the requests. latency must be above 0.
func (f *File) CheckLatency(latency time.Duration) []*Error {
	s := &shown{file: f}
	if f.source == nil {
		return nil
	}
	s.decoder, s.root = f.source()
	var found []*Error
	for i := range f.Providers {
		p := &f.Providers[i]
		paced := slices.DeleteFunc(slices.Clone(p.Gate.Limits), func(l mete.Limit) bool { return l.Calendar != "" || l.N == 0 })
		if p.Gate.Concurrency <= 0 || len(paced) == 0 {
			continue
		}
		l := slices.MinFunc(paced, func(a, b mete.Limit) int { return cmp.Compare(a.Per, b.Per) })
		plan, err := sizing.For(sizing.Input{
			Rate: float64(l.N), Per: l.Per, Latency: latency, Headroom: 1, Pool: p.Gate.Concurrency,
		})
		if err != nil || plan.Permits >= plan.By.Rate {
			continue
		}
		reached := plan.PerSecond * l.Per.Seconds()
		at := s.find("providers", p.Name, "concurrency")
		if at == nil {
			at = s.key("providers", p.Name)
		}
		found = append(found, s.decoder.problem(at.line, at.col, fmt.Sprintf(
			"concurrency %d is too low for %s of %s: %s x %s needs %d in flight, and %d carry %s; write concurrency: %d to have some to spare",
			p.Gate.Concurrency, l, p.Name, l, latency, plan.By.Rate, p.Gate.Concurrency, rateText(reached, l), 2*plan.By.Rate)))
	}
	return s.decoder.finish(found)
}

// key returns the key at path, not its value.
func (s *shown) key(path ...string) *node {
	last := len(path) - 1
	in := s.find(path[:last]...)
	return in.pairs[slices.IndexFunc(in.pairs, func(p pair) bool { return p.key.text == path[last] })].key
}

// rateText writes n per l's period, to a tenth.
func rateText(n float64, l mete.Limit) string {
	_, per, _ := strings.Cut(l.String(), "/")
	return fmt.Sprintf("%g/%s", math.Round(n*10)/10, per)
}
