package adaptive

// judgeAIMD is additive increase, multiplicative decrease (Chiu and Jain,
// 1989) as Netflix/concurrency-limits does it for each sample, but once per
// window: a limit that grows with each call doubles every round trip.
func (l *Limiter) judgeAIMD(s summary) {
	f := &l.failure
	switch {
	case f.recent.failed > 0:
		l.limit, l.reason = l.limit*l.cfg.Backoff, Cut
		f.epoch++
	case s.n > 0 && 2*s.peak >= l.Limit():
		l.limit, l.reason = l.limit+1, Growth
	}
}
