package simulate

import "time"

// shared serves all its calls at once. Its clock runs the slower the more there
// are, so that each call's end stands at a fixed time on that clock.
type shared struct {
	work  agenda // the ends, in time of this clock
	clock time.Duration
	at    time.Duration // when the clock was read
	turn  int32         // of the one event that is scheduled; older ones are void
}

// pace is how fast the clock runs with n calls: the universal scalability law.
func (p *Provider) pace(n int) float64 {
	k := float64(n)
	return 1 / (1 + p.Sigma*(k-1) + p.Kappa*k*(k-1))
}

func (s *shared) add(w *world, n int32) {
	s.advance(w)
	s.work.add(event{at: s.clock + w.provider.Service(w.service, w.now), call: n})
	s.next(w)
}

func (s *shared) served(w *world, e event) {
	if e.call != s.turn {
		return
	}
	s.advance(w)
	done := s.work.pop()
	s.clock = max(s.clock, done.at) // what rounding left
	w.station.leave(w, done.call)
	s.next(w)
}

func (s *shared) advance(w *world) {
	if n := len(s.work.heap); n > 0 {
		s.clock += time.Duration(float64(w.now-s.at) * w.provider.pace(n))
	}
	s.at = w.now
}

func (s *shared) next(w *world) {
	s.turn++
	if end, ok := s.work.next(); ok {
		in := float64(end-s.clock) / w.provider.pace(len(s.work.heap))
		w.schedule(w.now+time.Duration(in)+1, event{kind: served, call: s.turn})
	}
}
