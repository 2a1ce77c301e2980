package adaptive

import "time"

const (
	rateHold        = 10 * time.Second
	longestRateHold = 300 * time.Second
	careful         = 0.99 // of a measured rate: a little too much would be refused for ever
)

// quota learns from refusals (429) at which rate a provider accepts calls.
// Fewer permits would be the wrong answer to a rate: the right number of them
// depends on the latency, and any number sends bursts.
type quota struct {
	counting    bool          // an episode: after a refusal, accepted and refused calls are counted
	since, ends time.Duration // of it
	judged      time.Duration // when it should be known what became of them
	sent        int           // calls sent in it
	refused     int           // of these
	lost        int           // of these, failed in another way
	first       float64       // the first rate that was found
	misses      int           // episodes although the rate was held
	blamed      float64       // the limit that these speak for instead; 0 is none
	ceiling                   // the rate, per second
	starts      int           // since the hold or the step began
	from        time.Duration // when that was
}

// rate is the pace to keep; 0 is none.
func (q *quota) rate() float64 {
	if q.level == 0 {
		return 0
	}
	return q.top()
}

func (q *quota) due() time.Duration {
	if q.counting {
		return q.judged
	}
	return q.ceiling.due()
}

func (q *quota) start(now time.Duration) {
	q.starts++
	if q.counting && now < q.ends {
		q.sent++
	}
}

// in reports whether a call was sent in the episode. The refused call that
// began it was not.
func (q *quota) in(t Ticket) bool {
	return q.counting && t.start >= q.since && t.start < q.ends
}

// throttle takes a refusal, or reports that it is to count as a failure: if
// the provider was found to count calls in flight, or if a higher limit is
// just being tried, which is then to blame.
func (l *Limiter) throttle(now time.Duration, t Ticket) bool {
	f, q := &l.failure, &l.quota
	if l.cfg.Algorithm == AIMD || l.cfg.Without.RateCeiling || f.throttles || f.trying() && l.limit > f.level {
		return false
	}
	if !q.counting {
		q.counting, q.since, q.sent, q.lost, q.refused = true, now, 0, 0, 0
		q.ends = now + max(time.Second, duration(10*l.mean))
		q.judged = q.ends + duration(l.mean)
	} else if q.in(t) {
		q.refused++
	}
	l.window.throttled = true
	return true
}

// passQuota ends an episode, or tries a higher rate, when it is time to.
func (l *Limiter) passQuota(now time.Duration) {
	q := &l.quota
	if q.counting {
		if now >= q.judged {
			q.counting = false
			l.judgeQuota(now)
		}
		return
	}
	if q.level == 0 || now < q.until {
		return
	}
	trial := max(2*time.Second, duration(20*l.mean))
	if float64(q.starts) < 0.8*q.rate()*seconds(now-q.from) {
		q.until = now + trial // the rate is not used: it says nothing
	} else {
		q.misses = 0
		q.raise(now, 0.05*q.level, 0.4*q.level, trial)
	}
	q.starts, q.from = 0, now
}

// judgeQuota makes a rate of an episode: what was accepted while others were
// refused is the quota.
func (l *Limiter) judgeQuota(now time.Duration) {
	q := &l.quota
	accepted := max(q.sent-q.refused-q.lost, 0)
	share := float64(q.refused) / float64(max(accepted+q.refused, 1))
	if !(q.refused >= 3 && share >= 0.01 || q.refused >= 2 && q.trying()) {
		return
	}
	measured := careful * max(float64(accepted), 1) / seconds(q.ends-q.since)
	switch {
	case q.level == 0:
		q.first, q.misses = measured, 0
		q.set(l, now, measured, rateHold)
	case q.trying():
		q.set(l, now, min(max(q.level, measured), q.top()), min(2*q.hold, longestRateHold))
	default:
		if share > 0.02 {
			q.misses++
		}
		q.set(l, now, min(0.97*q.level, measured), q.hold)
		if q.misses >= 2 || q.level < 0.88*q.first {
			// No rate ends it: the provider counts calls in flight.
			peak := min(float64(max(l.window.peak, l.last.peak)), l.limit)
			q.blamed = max(peak*(1-share), l.limit/2)
			q.ceiling, q.misses = ceiling{}, 0
		}
	}
	q.starts, q.from = 0, now
	l.reason = Rate
}
