package simulate

import (
	"time"

	"github.com/metehq/mete/adaptive"
)

// ours is the limiter of package adaptive.
type ours struct{ *adaptive.Limiter }

func newOurs(cfg adaptive.Config) func(Setting) limiter {
	return func(s Setting) limiter {
		cfg := cfg
		cfg.Min, cfg.Max, cfg.Initial = minLimit, maxLimit, s.initial()
		cfg.Seed = s.Seed*1000 + uint64(s.Client)
		// Virtual time begins at a multiple of the drains' ten seconds.
		return ours{adaptive.New(cfg, 0)}
	}
}

func (o ours) Start(now time.Duration, inFlight int) ticket {
	return ticket{at: now, ours: o.Limiter.Start(now, inFlight)}
}

func (o ours) Done(now time.Duration, t ticket, how outcome) time.Duration {
	return o.Limiter.Done(now, t.ours, [...]adaptive.Outcome{
		success: adaptive.Success, throttled: adaptive.Throttled, failed: adaptive.Failed,
	}[how])
}

// Knee is the name of the limiter under test.
const Knee = "knee"

// Ablations are the limiter under test without one of its parts each.
func Ablations() []Algorithm {
	return []Algorithm{
		{"no drains", newOurs(adaptive.Config{Without: adaptive.Without{Drains: true}})},
		{"unaligned", newOurs(adaptive.Config{Without: adaptive.Without{Alignment: true}})},
		{"no guard", newOurs(adaptive.Config{Without: adaptive.Without{Guard: true}})},
		{"no budget", newOurs(adaptive.Config{Without: adaptive.Without{Budget: true}})},
		{"no quarantine", newOurs(adaptive.Config{Without: adaptive.Without{Quarantine: true}})},
		{"no rate", newOurs(adaptive.Config{Without: adaptive.Without{RateCeiling: true}})},
		{"failures", newOurs(adaptive.Config{Algorithm: adaptive.Failures})},
	}
}
