package simulate

import (
	"math"
	"slices"
	"time"
)

// correlation is failsafe-go's adaptivelimiter: Vegas on smoothed 90th
// percentiles, which also lowers the limit when more calls in flight went with
// less throughput, or with more latency. Every outcome counts as a latency.
type correlation struct {
	l         float64
	end       time.Duration
	latencies []time.Duration
	inFlight  int
	recent    []float64 // the last percentiles
	short     mean
	long      mean
	flights   []float64 // the last windows
	trips     []float64
	rates     []float64
}

func newCorrelation(s Setting) rule {
	return &correlation{l: float64(s.initial()), short: mean{over: 5, warm: 1}, long: mean{over: 10, warm: 10}}
}

func (c *correlation) limit() int { return int(c.l) }

func (c *correlation) sample(s sample) {
	c.latencies = append(c.latencies, s.latency)
	c.inFlight = max(c.inFlight, s.inFlight)
	if s.now < c.end || len(c.latencies) < 50 {
		return
	}
	slices.Sort(c.latencies)
	c.window(c.latencies[len(c.latencies)*9/10].Seconds(), float64(c.inFlight))
	c.end = s.now + time.Second
	c.latencies, c.inFlight = c.latencies[:0], 0
}

func (c *correlation) window(p90, inFlight float64) {
	keep(&c.recent, p90, 5)
	sorted := slices.Sorted(slices.Values(c.recent))
	short := c.short.add(sorted[len(sorted)/2])
	long := c.long.add(short)
	keep(&c.flights, inFlight, 50)
	keep(&c.trips, short, 50)
	keep(&c.rates, inFlight/short, 50)
	rate, latency := correlate(c.flights, c.rates), correlate(c.flights, c.trips)
	_, cv := spread(c.rates)

	step := math.Max(1, math.Floor(math.Log10(c.l)))
	queue := math.Ceil(c.l * (1 - long/short))
	full := inFlight >= c.l
	switch {
	case queue > 6*step,
		full && rate < 0,
		full && latency > 0.5 && (rate < 0.3 || cv < 0.2),
		c.l > 5*inFlight:
		c.l -= step
	case queue < 3*step:
		c.l += step
	}
	c.l = max(minLimit, min(maxLimit, c.l))
}

func keep(last *[]float64, v float64, n int) {
	*last = append(*last, v)
	if len(*last) > n {
		*last = (*last)[1:]
	}
}

// correlate is Pearson's coefficient, 0 for values that do not vary.
func correlate(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, sxx, syy, sxy float64
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		sxx, syy, sxy = sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	d := math.Sqrt((n*sxx - sx*sx) * (n*syy - sy*sy))
	if !(d > 1e-12) {
		return 0
	}
	return (n*sxy - sx*sy) / d
}
