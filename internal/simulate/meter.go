package simulate

import (
	"math"
	"slices"
	"time"
)

// Result is what one run showed. Shares are of the calls sent.
type Result struct {
	Goodput      float64 // successes in the window over the optimum
	P50, P99     float64 // latency of successes in the window over that without load
	Failed       float64 // of the calls that ended in the window
	FailedAll    float64 // of all calls of the run
	Throttled    float64 // answered 429, in the window
	ThrottledAll float64
	Converge     float64 // seconds until 90 % of the optimum; infinite if never
	Limit, CV    float64 // mean of the limit in the window, and its coefficient of variation
	Jain         float64 // fairness between clients: 1 is equal shares
}

// slot is the grain in which successes are counted.
const slot = 100 * time.Millisecond

// meter watches a run.
type meter struct {
	sc        Scenario
	every     time.Duration // between looks at the limit
	in, all   [3]int        // calls by outcome, in the window and ever
	latencies []time.Duration
	clients   []float64 // successes in the window
	slots     []int     // successes
	limits    []float64
}

func newMeter(sc Scenario) *meter {
	return &meter{
		sc:      sc,
		every:   (sc.To - sc.From) / 2000,
		clients: make([]float64, max(1, sc.Clients)),
		slots:   make([]int, sc.End/slot+1),
	}
}

func (m *meter) done(now time.Duration, client int, o outcome, latency time.Duration) {
	m.all[o]++
	if o == success {
		m.slots[now/slot]++
	}
	if now < m.sc.From || now >= m.sc.To {
		return
	}
	m.in[o]++
	if o == success {
		m.latencies = append(m.latencies, latency)
		m.clients[client]++
	}
}

func (m *meter) limit(sum float64) { m.limits = append(m.limits, sum) }

func (m *meter) result() Result {
	r := Result{
		Goodput:      float64(m.in[success]) / (m.sc.Optimum * (m.sc.To - m.sc.From).Seconds()),
		Failed:       share(m.in, failed, throttled),
		FailedAll:    share(m.all, failed, throttled),
		Throttled:    share(m.in, throttled),
		ThrottledAll: share(m.all, throttled),
		Converge:     m.converge(),
		Jain:         jain(m.clients),
	}
	r.Limit, r.CV = spread(m.limits)
	if n := len(m.latencies); n > 0 {
		slices.Sort(m.latencies)
		r.P50 = m.latencies[n/2].Seconds() / m.sc.NoLoad.P50.Seconds()
		r.P99 = m.latencies[n*99/100].Seconds() / m.sc.NoLoad.P99.Seconds()
	}
	return r
}

// converge is the first time since the last change from which a span of time
// holds 90 % of the successes it could.
func (m *meter) converge() float64 {
	span := int(m.sc.Span / slot)
	first := int(m.sc.Since / slot)
	last := int(m.sc.To/slot) - span
	sum := 0
	for i := first; i < first+span && i < len(m.slots); i++ {
		sum += m.slots[i]
	}
	for i := first; i <= last; i++ {
		if float64(sum) >= 0.9*m.sc.Optimum*m.sc.Span.Seconds() {
			return (time.Duration(i)*slot - m.sc.Since.Truncate(slot)).Seconds()
		}
		sum += m.slots[i+span] - m.slots[i]
	}
	return math.Inf(1)
}

func share(calls [3]int, of ...outcome) float64 {
	part := 0
	for _, o := range of {
		part += calls[o]
	}
	if part == 0 {
		return 0
	}
	return float64(part) / float64(calls[success]+calls[throttled]+calls[failed])
}

// jain is Jain's index of fairness.
func jain(v []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(v)) * squares)
}

// spread is the mean and the coefficient of variation.
func spread(v []float64) (mean, cv float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		cv += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(cv/float64(len(v))) / mean
}
