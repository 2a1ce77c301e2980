package simulate

import "time"

// windowed feeds a rule one sample a second, as Netflix concurrency-limits'
// WindowedLimit does: the mean latency, the most calls in flight, and whether
// any failed. Windows of less than ten calls are thrown away.
type windowed struct {
	rule
	end      time.Duration
	calls    int
	sum      time.Duration
	inFlight int
	dropped  bool
}

func (w *windowed) sample(s sample) {
	w.calls++
	w.sum += s.latency // of failures too
	w.inFlight = max(w.inFlight, s.inFlight)
	w.dropped = w.dropped || s.dropped
	if s.now <= w.end {
		return
	}
	if w.calls >= 10 {
		w.rule.sample(sample{now: s.now, latency: w.sum / time.Duration(w.calls), inFlight: w.inFlight, dropped: w.dropped})
	}
	*w = windowed{rule: w.rule, end: s.now + time.Second}
}
