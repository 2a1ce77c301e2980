package mete

import (
	"time"
)

const (
	quietAfter = 10 * time.Minute
	slowest    = 1.0 / 8
	// closeEnough ends the search: the share that holds is within it of one
	// that did not.
	closeEnough = 0.95
)

// search finds the share of the configured rate that the provider really
// allows, where that is less. A throttle lowers the share: to what was accepted
// in the limit's last period, if the calls came as fast as they were let, since
// a window that refuses has just accepted its quota; else by a tenth, as after
// a token bucket's refusal, which tells less. A share that stood for a whole
// period is good, and as long as a worse one is more than a twentieth away the
// middle is tried (the binary search of BIC-TCP; Xu, Harfoush, Rhee, 2004).
// Ten quiet minutes move what counts as bad up by a tenth.
//
// The zero value is the whole rate.
type search struct {
	on      bool
	share   float64       // in force
	good    float64       // stood for a trial; 0 is none
	bad     float64       // was refused
	since   time.Duration // when share began to be tried
	counted float64       // what was accepted until the last refusal
	took    time.Duration // how long the last share stood that was refused
	quiet   time.Duration // of the last throttle, or when bad last moved
}

// current is the share of the configured rate that is in force.
func (s *search) current() float64 {
	if !s.on {
		return 1
	}
	return s.share
}

// refused lowers the share. counted is the share that was accepted in the last
// period; 0 is not known.
func (s *search) refused(now time.Duration, counted float64) {
	was := s.current()
	known := counted > 0 && counted < closeEnough*was
	if s.good >= was || known && s.good > counted {
		s.good = 0
	}
	s.bad, s.share = was, max(0.9*was, s.good, slowest)
	if known && counted >= s.share {
		s.bad, s.share = counted, counted
	}
	s.counted = 0
	if known && counted >= was/2 {
		s.counted = counted
	}
	s.took = now - s.since
	s.on, s.since, s.quiet = true, now, now
}

// reopened tells that the provider takes calls again, and whether all that was
// accepted before the refusal, and the pause after it, make up the period of
// the limit. Then it is a window, and what was counted is its quota.
func (s *search) reopened(now time.Duration, whole bool) {
	s.since = now
	if whole && s.counted > 0 {
		s.share = max(s.counted, slowest)
		s.bad = s.share // good is no more: refused saw to that
	}
	s.counted = 0
}

// trial is how long a share must stand to count as good: some times as long as
// the last refusal took to come, at most two periods of the paced limit.
func (s *search) trial(period time.Duration) time.Duration {
	return max(min(4*s.took, 2*period), 10*time.Second)
}

// due is when the search takes its next step if there is no throttle.
func (s *search) due(period time.Duration) time.Duration {
	at := s.quiet + max(quietAfter, 2*period)
	if s.share < closeEnough*s.bad {
		at = min(at, s.since+s.trial(period))
	}
	return at
}

// step lets time pass.
func (s *search) step(now, period time.Duration) {
	if now-s.quiet >= max(quietAfter, 2*period) {
		s.quiet = now
		s.bad /= 0.9
	}
	if now-s.since >= s.trial(period) && s.share < closeEnough*s.bad {
		s.good = s.share
		s.share, s.since = (s.share+s.bad)/2, now
	}
	if s.share >= 1 {
		*s = search{}
	}
}

// period is that of the paced limit, within ten minutes.
func (q *queue) period() time.Duration {
	if l := q.pacedLimit(); l != nil {
		return min(l.Per, quietAfter)
	}
	return time.Minute
}

// pacedLimit is the limit of requests whose starts keep a distance; nil if
// there is none.
func (q *queue) pacedLimit() (found *limit) {
	for i := range q.limits {
		l := &q.limits[i]
		if !l.removed && !l.learned && l.Calendar == "" && l.unit() == Requests && (found == nil || l.Per < found.Per) {
			found = l
		}
	}
	return found
}

// refusals are the starts that were refused last.
type refusals struct {
	at [8]time.Duration // 0 is none
	n  int
}

func (r *refusals) add(at time.Duration) {
	r.at[r.n%len(r.at)] = at
	r.n++
}

// within is how many of them lie after from and not after to.
func (r *refusals) within(from, to time.Duration) (n int64) {
	for _, at := range r.at {
		if at > max(from, 0) && at <= to {
			n++
		}
	}
	return n
}

// accepted is the share of the configured rate that was accepted in the period
// before the attempt that is refused now, itself not counted; 0 if that is not
// known, or if the calls did not come as fast as they were let.
func (q *queue) accepted(f *flight, l *limit) float64 {
	c := f.chargeOf(l)
	if c == nil || c.Used() == 0 || l.N == 0 {
		return 0
	}
	n := c.Used() - c.Units() - q.pause.refusals.within(c.At()-l.Per, c.At())
	counted := float64(n) / float64(l.N)
	open := min(l.Per, c.At()-q.pause.opened)
	if counted < 0.75*q.pause.search.current()*float64(open)/float64(l.Per) {
		return 0
	}
	return counted
}
