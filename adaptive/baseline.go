package adaptive

// baseline is the median latency without a queue of our own making.
//
// It cannot be taken from the least latency seen: a lucky minimum of a wide
// distribution makes every other call look queued (Netflix/concurrency-limits#37).
// Nor may it be learnt anew under load, from which it drifts upwards
// (Netflix/concurrency-limits#165, failsafe-go/failsafe-go#127). So under load
// it only falls; up it goes by drains and while the limit does not bind.
type baseline struct {
	known    bool
	value    float64 // seconds
	variance float64
}

// first sets the baseline.
func (b *baseline) first(median, se float64) {
	*b = baseline{known: true, value: median, variance: se * se}
}

// toward moves the baseline by a share of the way.
func (b *baseline) toward(value, se, share float64) {
	b.value += share * (value - b.value)
	b.variance = (1-share)*(1-share)*b.variance + share*share*se*se
}

// join takes a measurement that is as good as those before it: the mean,
// weighted by the inverse of the variances.
func (b *baseline) join(s summary) {
	if total := b.variance + s.se*s.se; total > 0 {
		b.toward(s.median, s.se, b.variance/total)
	}
}

// idle learns from a window in which the limit did not bind.
func (b *baseline) idle(s summary) { b.toward(s.median, s.se, 0.2) }

// fall learns from a window under load, downwards only.
func (b *baseline) fall(s summary) {
	if edge := s.median + s.se; edge < b.value {
		b.value += 0.25 * (edge - b.value)
	}
}
