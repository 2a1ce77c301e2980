package adaptive

import (
	"math/rand/v2"
	"testing"
	"time"
)

// station is a provider with callers: so many servers, first in first out, and
// callers without end, of whom no more than want are in flight at once.
type station struct {
	l       *Limiter
	random  *rand.Rand
	servers int                                       // 0 is any number
	latency func(r *rand.Rand) time.Duration          // of a call, once it is served
	fate    func(s *station) (Outcome, time.Duration) // Ignored, 0 is to be served
	want    int
	settle  func(s *station) // after every event

	now     time.Duration
	out     int             // permits out, kept-back ones included
	busy    []time.Duration // when each server is free
	started time.Duration   // the last call
	calls   []flight
}

type flight struct {
	end    time.Duration
	ticket Ticket
	o      Outcome
	free   bool // a permit that was kept back is free
}

func newStation(cfg Config, seed uint64, servers, want int) *station {
	return &station{
		l: New(cfg, 0), random: rand.New(rand.NewPCG(seed, 1)), servers: servers, want: want,
		latency: exponential(50 * time.Millisecond),
		busy:    make([]time.Duration, servers),
	}
}

func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Millisecond + time.Duration(r.ExpFloat64()*float64(mean))
	}
}

// run goes on until the time is over.
func (s *station) run(until time.Duration) {
	for {
		next := s.l.Step(s.now)
		for s.out < s.want && s.out < s.l.Limit() {
			if rate := s.l.Rate(); rate > 0 {
				if due := s.started + duration(1/rate); s.now < due {
					next = min(next, due)
					break
				}
			}
			s.started = s.now
			s.out++
			s.calls = append(s.calls, s.send())
		}
		if s.out < s.want && s.out >= s.l.Limit() {
			s.l.Blocked(s.now)
		}
		if s.settle != nil {
			s.settle(s)
		}
		first := -1
		for i, c := range s.calls {
			if first < 0 || c.end < s.calls[first].end {
				first = i
			}
		}
		if first < 0 || next > s.now && next < s.calls[first].end {
			s.now = max(next, s.now+time.Microsecond)
		} else {
			c := s.calls[first]
			s.calls[first] = s.calls[len(s.calls)-1]
			s.calls = s.calls[:len(s.calls)-1]
			s.now = max(s.now, c.end)
			if !c.free {
				if free := s.l.Done(s.now, c.ticket, c.o); free > s.now {
					s.calls = append(s.calls, flight{end: free, free: true})
					continue
				}
			}
			s.out--
		}
		if s.now >= until {
			return
		}
	}
}

func (s *station) send() flight {
	t := s.l.Start(s.now, s.out)
	if s.fate != nil {
		if o, after := s.fate(s); after > 0 {
			return flight{end: s.now + after, ticket: t, o: o}
		}
	}
	service := s.latency(s.random)
	if s.servers == 0 {
		return flight{end: s.now + service, ticket: t, o: Success}
	}
	soonest := 0
	for i := range s.busy {
		if s.busy[i] < s.busy[soonest] {
			soonest = i
		}
	}
	s.busy[soonest] = max(s.busy[soonest], s.now) + service
	return flight{end: s.busy[soonest], ticket: t, o: Success}
}

func TestKneeFindsTheKnee(t *testing.T) {
	s := newStation(Config{}, 1, 20, 1000)
	sum, n := 0, 0
	s.settle = func(s *station) {
		if s.now > 20*time.Second && !s.l.drain.active {
			sum, n = sum+s.l.Limit(), n+1
		}
	}
	s.run(60 * time.Second)
	if mean := sum / n; mean < 20 || mean > 34 {
		t.Errorf("the limit for 20 servers is %d on average", mean)
	}
}
