package simulate

import (
	"fmt"
	"time"

	"github.com/metehq/mete/adaptive"
)

// Knee is the name of the limiter under test.
const Knee = "knee"

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

// Ablation is the limiter under test without one of its parts, in the scenario
// that then must go wrong.
type Ablation struct {
	Algorithm
	Scenario string
	p50      float64 // at least, where a mere miss would say too little
}

// Ablations show what each part is worth.
func Ablations() []Ablation {
	without := func(part, scenario string, w adaptive.Without) Ablation {
		return Ablation{Algorithm: Algorithm{part, newOurs(adaptive.Config{Without: w})}, Scenario: scenario}
	}
	unaligned := without("unaligned", "S7", adaptive.Without{Alignment: true})
	unaligned.p50 = 3 * figures["S7"].p50
	return []Ablation{
		without("no drains", "S3", adaptive.Without{Drains: true}),
		unaligned,
		without("no budget", "S9", adaptive.Without{Budget: true}),
		without("no quarantine", "S8f", adaptive.Without{Quarantine: true}),
		without("no rate", "S6", adaptive.Without{RateCeiling: true}),
		{Algorithm: Algorithm{"no latency", newOurs(adaptive.Config{Algorithm: adaptive.Failures})}, Scenario: "S1"},
	}
}

// Needless says that a part is not needed, if its scenario goes well without.
func (a Ablation) Needless(r Row) (missed []string) {
	if len(r.Missed()) == 0 || r.Mean.P50 < a.p50 {
		missed = append(missed, fmt.Sprintf("%s goes too well: %s", a.Scenario, a.Name))
	}
	return missed
}
