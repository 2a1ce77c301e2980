package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// vegas is the rule of Netflix concurrency-limits' VegasLimit: it holds its own
// queue, as the least latency suggests it, between three and six times log10 of
// the limit.
type vegas struct {
	l      float64
	least  time.Duration
	count  float64
	jitter float64
	random *rand.Rand
}

func newVegas(s Setting) rule {
	v := &vegas{l: float64(s.initial()), random: rand.New(rand.NewPCG(s.Seed, uint64(s.Client)+100))}
	v.shake()
	return v
}

func (v *vegas) limit() int { return int(v.l) }
func (v *vegas) shake()     { v.jitter = 0.5 + v.random.Float64()/2 }

func (v *vegas) sample(s sample) {
	if v.count++; v.count >= v.jitter*30*v.l {
		v.shake()
		v.count, v.least = 0, s.latency
		return
	}
	if v.least == 0 || s.latency < v.least {
		v.least = s.latency
		return
	}
	step := math.Max(1, math.Floor(math.Log10(v.l)))
	queue := math.Ceil(v.l * (1 - v.least.Seconds()/s.latency.Seconds()))
	switch {
	case s.dropped:
		v.l -= step
	case 2*float64(s.inFlight) < v.l:
	case queue <= step:
		v.l += 6 * step
	case queue < 3*step:
		v.l += step
	case queue > 6*step:
		v.l -= step
	}
	v.l = min(maxLimit, max(minLimit, v.l))
}
