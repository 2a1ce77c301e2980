package mete

import (
	"time"

	"github.com/metehq/mete/sizing"
)

// work is what permits were held for.
type work struct {
	ended   int64         // permits whose end was timed: all, while anybody waits
	held    time.Duration // those, from grant to end
	latest  time.Duration // that of the last one
	sent    int64         // starts that were stamped
	conn    time.Duration // those, from grant to wire
	backoff time.Duration // that attempts stayed away before they queued again
}

// end books the end of a permit that was held for d.
func (w *work) end(d time.Duration, refund bool) {
	if !refund {
		w.ended++
		w.held += d
		w.latest = d
	}
}

// Latency is the mean time for which a permit was held, from the grant to the
// end, as far as it was timed; 0 if nothing was.
func (s Stats) Latency() time.Duration {
	if s.Ended == 0 {
		return 0
	}
	return s.Held / time.Duration(s.Ended)
}

// Plan computes how many permits the gate needs, from its tightest limit of
// requests and its measured latency (see package sizing). A headroom of 0 is
// 2. The error says what is not known yet.
func (s Stats) Plan(headroom float64) (sizing.Plan, error) {
	l, _ := s.tightest()
	return sizing.For(sizing.Input{Rate: float64(l.N), Per: l.Per, Latency: s.Latency(), Headroom: headroom})
}

// tightest is the limit of requests with the least starts per second.
func (s Stats) tightest() (tight Limit, perSecond float64) {
	for _, l := range s.Limits {
		if l.unit() != Requests || l.Calendar != "" || l.Per <= 0 || l.N <= 0 {
			continue
		}
		if r := float64(l.N) / l.Per.Seconds(); perSecond == 0 || r < perSecond {
			tight, perSecond = l.Limit, r
		}
	}
	return tight, perSecond
}
