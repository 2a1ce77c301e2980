package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// override lets flags win over the file.
func (f *runFlags) override(c *cobra.Command, s *runner.Spec, limits []mete.Limit, concurrency int, auto *adaptive.Config) {
	changed := c.Flags().Changed
	if len(limits) > 0 {
		units := map[string]bool{}
		for _, l := range limits {
			units[l.Unit] = true
		}
		kept := slices.DeleteFunc(slices.Clone(s.Gate.Limits), func(l mete.Limit) bool {
			return units[l.Unit] || (l.Unit == mete.Requests && units[""])
		})
		s.Gate.Limits = append(kept, limits...)
	}
	if f.concurrency != "" {
		s.Gate.Concurrency, s.Gate.Adaptive = concurrency, auto
	}
	if changed("retry") {
		s.Gate.Retry.Attempts = f.retries + 1
	}
	if changed("retry-delay") {
		s.Gate.Retry.Delay = f.retryDelay
	}
	if changed("timeout") {
		s.Timeout.Attempt = f.timeout
	}
	s.Gate.MaxWait, s.Gate.MaxQueue = -1, 0 // rows wait; there is nobody to shed for
	s.Gate.Lanes = slices.Clone(s.Gate.Lanes)
	for i := range s.Gate.Lanes {
		s.Gate.Lanes[i].MaxWait, s.Gate.Lanes[i].MaxQueue = 0, 0
	}
	s.Gate.Timeout = 0 // the runner times each attempt itself
}

func (f *runFlags) flagLimits() ([]mete.Limit, error) {
	var limits []mete.Limit
	for _, text := range f.rates {
		l, err := mete.ParseRate(text)
		if err != nil {
			return nil, fmt.Errorf("--rate %s: %w", text, err)
		}
		l.Burst = f.burst
		limits = append(limits, l)
	}
	others, err := f.costs.rates()
	if err != nil {
		return nil, err
	}
	limits = append(limits, others...)
	if f.burst < 0 {
		return nil, fmt.Errorf("--burst %d: want at least 1", f.burst)
	}
	seen := map[string]bool{}
	for _, l := range limits {
		if key := l.Unit + " " + l.Per.String(); seen[key] {
			return nil, fmt.Errorf("two limits per %v: which one holds?", l.Per)
		} else {
			seen[key] = true
		}
	}
	return limits, nil
}

// flagConcurrency reads -c: a number, or how to find it; 0 and nil is neither.
func (f *runFlags) flagConcurrency() (int, *adaptive.Config, error) {
	switch f.concurrency {
	case "":
		return 0, nil, nil
	case "auto":
		return 0, &adaptive.Config{Algorithm: adaptive.Knee}, nil
	case "aimd":
		return 0, &adaptive.Config{Algorithm: adaptive.AIMD}, nil
	}
	n, err := strconv.Atoi(f.concurrency)
	if err != nil || n < 1 || n > 100_000 {
		return 0, nil, fmt.Errorf("-c %s: want a number from 1 to 100000, or auto", f.concurrency)
	}
	return n, nil, nil
}
