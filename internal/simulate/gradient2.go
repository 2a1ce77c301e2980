package simulate

// gradient2 is the rule of Netflix concurrency-limits' Gradient2Limit: the limit
// times the ratio of long-term to present latency, plus four, smoothed.
// Failures count as latencies.
type gradient2 struct {
	l    float64
	long mean
}

func newGradient2(s Setting) rule {
	return &gradient2{l: float64(s.initial()), long: mean{over: 600, warm: 10}}
}

func (g *gradient2) limit() int { return int(g.l) }

func (g *gradient2) sample(s sample) {
	short := s.latency.Seconds()
	long := g.long.add(short)
	if long > 2*short {
		g.long.value *= 0.95
	}
	if float64(s.inFlight) < g.l/2 {
		return
	}
	gradient := min(1, max(0.5, 1.5*long/short))
	g.l = min(maxLimit, max(minLimit, 0.8*g.l+0.2*(g.l*gradient+4)))
}

// mean is an exponentially weighted mean over about so many values, plain at
// first.
type mean struct {
	over, warm int
	n          int
	sum, value float64
}

func (m *mean) add(v float64) float64 {
	if m.n < m.warm {
		m.n++
		m.sum += v
		m.value = m.sum / float64(m.n)
	} else {
		m.value += (v - m.value) * 2 / float64(m.over+1)
	}
	return m.value
}
