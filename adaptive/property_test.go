package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawn is a station of any kind: its servers, latencies, failures and callers
// are drawn, and may change at times.
func drawn(t *rapid.T, cfg Config) *station {
	s := newStation(cfg, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 30).Draw(t, "servers"), rapid.IntRange(1, 60).Draw(t, "want"))
	mean := time.Duration(rapid.IntRange(20, 120).Draw(t, "mean")) * time.Millisecond
	failures := rapid.Float64Range(0, 0.6).Draw(t, "failures")
	throttled := rapid.Float64Range(0, 0.3).Draw(t, "throttled")
	ignored := rapid.Float64Range(0, 0.2).Draw(t, "ignored")
	s.latency = func(r *rand.Rand) time.Duration {
		slow := 1 + 2*float64(int(s.now/(3*time.Second))%2)
		return time.Duration(slow * float64(exponential(mean)(r)))
	}
	s.fate = func(s *station) (Outcome, time.Duration) {
		bad := int(s.now/(2*time.Second))%2 == 1
		switch x := s.random.Float64(); {
		case bad && x < failures:
			return Failed, time.Duration(1 + s.random.Int64N(int64(2*mean)))
		case bad && x < failures+throttled:
			return Throttled, time.Millisecond
		case x > 1-ignored:
			return Ignored, time.Duration(1 + s.random.Int64N(int64(mean)))
		}
		return Success, 0
	}
	return s
}

func anyConfig(t *rapid.T) Config {
	cfg := Config{
		Algorithm: rapid.SampledFrom([]Algorithm{Knee, Failures, AIMD}).Draw(t, "algorithm"),
		Min:       rapid.IntRange(1, 10).Draw(t, "min"),
		Max:       rapid.IntRange(10, 300).Draw(t, "max"),
	}
	cfg.Initial = rapid.IntRange(cfg.Min, cfg.Max).Draw(t, "initial")
	return cfg
}

const span = 11 * time.Second

func TestLimitStaysInItsBoundsAndMovesAtMostTwofold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		before := s.l.limit
		s.settle = func(s *station) {
			l := s.l
			if n := l.Limit(); n < l.cfg.Min || n > l.cfg.Max || math.IsNaN(l.limit) || math.IsInf(l.limit, 0) {
				t.Fatalf("at %v: limit %v, %d permits, of %d to %d", s.now, l.limit, n, l.cfg.Min, l.cfg.Max)
			}
			if l.limit > 2*before || l.limit < before/2 {
				t.Fatalf("at %v: from %v to %v at once", s.now, before, l.limit)
			}
			before = l.limit
		}
		s.run(span)
	})
}

func TestLimitGrowsOnlyWhereItBinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		if cfg.Algorithm == AIMD {
			cfg.Algorithm = Knee // AIMD grows from half the limit on
		}
		s := drawn(t, cfg)
		s.want = cfg.Initial - 1
		limit := s.l.limit
		s.settle = func(s *station) {
			if s.l.limit > limit {
				t.Fatalf("at %v: from %v to %v with %d in flight", s.now, limit, s.l.limit, s.out)
			}
			limit = s.l.limit
			s.want = s.l.Limit() - 1 // in flight, whatever the limit
		}
		s.run(span)
	})
}

func TestLatencyLowersNoLimitThatIsHalfUnused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, Config{Initial: 2 * rapid.IntRange(1, 50).Draw(t, "half")})
		s.fate = nil
		limit := s.l.limit
		s.want = max(1, int(limit/2)-1)
		if s.want >= int(limit/2) {
			s.want = 0
		}
		s.settle = func(s *station) {
			if s.l.limit != limit {
				t.Fatalf("at %v: from %v to %v with %d in flight", s.now, limit, s.l.limit, s.out)
			}
		}
		s.run(span)
	})
}

func TestOneDecreasePerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		limit, at, mean := s.l.limit, -time.Hour, 0.0
		s.settle = func(s *station) {
			if s.l.limit < limit {
				if s.now-at < duration(mean)-time.Microsecond {
					t.Fatalf("at %v: lowered again after %v, with calls of %v", s.now, s.now-at, duration(mean))
				}
				at, mean = s.now, s.l.mean
			}
			limit = s.l.limit
		}
		s.run(span)
	})
}

func TestFailuresFromBeforeACutChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, Config{})
		s.run(time.Duration(rapid.IntRange(100, 5000).Draw(t, "ms")) * time.Millisecond)
		old := s.l.Start(s.now, s.out+1)
		s.l.fall(s.now, s.l.limit*0.9, 0.1)
		failure, limit, window := s.l.failure, s.l.limit, s.l.window.calls
		for range 100 {
			s.l.Done(s.now, old, Failed)
		}
		if s.l.failure != failure || s.l.limit != limit || s.l.window.calls != window {
			t.Fatalf("%+v became %+v", failure, s.l.failure)
		}
	})
}

func TestIgnoredCallsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		s.run(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
		l := s.l
		tickets := make([]Ticket, 50)
		for i := range tickets {
			tickets[i] = l.Start(s.now, s.out+1)
		}
		failure, baseline, mean, window := l.failure, l.baseline, l.mean, l.window
		state := l.State()
		for _, ticket := range tickets {
			if free := l.Done(s.now, ticket, Ignored); free != s.now {
				t.Fatalf("the permit of an ignored call is kept back until %v, now being %v", free, s.now)
			}
		}
		after := l.State()
		after.InFlight = state.InFlight
		if after != state || l.failure != failure || l.baseline != baseline || l.mean != mean ||
			l.window.n != window.n || l.window.calls != window.calls {
			t.Fatalf("%+v became %+v", state, after)
		}
	})
}

func TestLatenciesOfErrorsAreNotLearnt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		s.run(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
		l := s.l
		ticket := l.Start(s.now, s.out+1)
		n, sum, sample := l.window.n, l.window.sum, len(l.window.sample)
		l.Done(s.now, ticket, rapid.SampledFrom([]Outcome{Failed, Throttled}).Draw(t, "outcome"))
		if w := &l.window; w.n > n || w.sum > sum || len(w.sample) > sample {
			t.Fatalf("the window had %d latencies, then %d", n, w.n)
		}
	})
}

func TestLatencyAloneDoesNotHoldTheLimitAtOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStation(Config{Initial: 1, Max: 20}, rapid.Uint64().Draw(t, "seed"), 0, 1000)
		mean := float64(rapid.IntRange(1, 300).Draw(t, "mean")) * float64(time.Millisecond)
		shape := rapid.Float64Range(0, 1.5).Draw(t, "shape")
		s.latency = func(r *rand.Rand) time.Duration {
			return 1 + time.Duration(math.Exp(shape*r.NormFloat64()-shape*shape/2)*mean)
		}
		most := 0
		s.settle = func(s *station) { most = max(most, s.l.Limit()) }
		s.run(time.Duration(150 * mean))
		if most < 8 {
			t.Fatalf("after 150 round trips the limit never was above %d", most)
		}
	})
}

// The oracle looks at every stretch of calls: in none are there more than
// three failures beyond 2 %.
func TestToleratedFailuresDoNotLowerTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStation(Config{Algorithm: Failures, Initial: 10}, rapid.Uint64().Draw(t, "seed"), 0, 5)
		// (A little less than three, for calls that end at the same time.)
		wanted := rapid.Float64Range(0, 0.2).Draw(t, "share")
		worst := 0.0 // of the stretches that end here: failures - 2 % of successes
		s.fate = func(s *station) (Outcome, time.Duration) {
			if s.random.Float64() < wanted && max(worst, 0)+1 <= 2.8 {
				worst = max(worst, 0) + 1
				return Failed, 10 * time.Millisecond
			}
			worst = max(worst, 0) - 0.02
			return Success, 0
		}
		s.latency = func(*rand.Rand) time.Duration { return 10 * time.Millisecond } // so that calls end in order
		s.settle = func(s *station) {
			if s.l.limit != 10 {
				t.Fatalf("at %v the limit is %v", s.now, s.l.limit)
			}
		}
		s.run(span)
	})
}

func TestEveryPermitComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		s.settle = func(s *station) {
			if s.out > s.want {
				t.Fatalf("%d permits are out", s.out)
			}
			for _, c := range s.calls {
				if c.free && c.end > s.now+longest {
					t.Fatalf("at %v a permit is kept back until %v", s.now, c.end)
				}
			}
		}
		s.run(span)
		s.want = 0
		s.settle = nil
		for s.out > 0 {
			s.run(s.now + time.Second)
		}
		if s.now > span+2*longest {
			t.Fatalf("the last permit came back at %v", s.now)
		}
	})
}

func TestDrainsFallOnTheGridAndGoBack(t *testing.T) {
	drains := 0
	rapid.Check(t, func(t *rapid.T) {
		s := newStation(Config{}, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(4, 10).Draw(t, "servers"), 50)
		wall := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "wall"))
		s.l = New(Config{}, wall)
		draining, limit := false, 0.0
		s.settle = func(s *station) {
			l := s.l
			if l.drain.active && !draining {
				drains, limit = drains+1, l.limit
				if late := (s.now + wall) % grid; !l.drain.early && late > duration(2*l.mean)+time.Millisecond {
					t.Fatalf("a drain began %v after a multiple of %v", late, grid)
				}
			}
			if draining && !l.drain.active && l.limit != limit {
				t.Fatalf("from %v to %v by a drain", limit, l.limit)
			}
			draining = l.drain.active
		}
		s.run(2*grid + grid/2)
	})
	if drains == 0 {
		t.Error("there was no drain")
	}
}

func TestDrainsTakeATenthOfTheTimeAtMost(t *testing.T) {
	for _, mean := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		s := newStation(Config{}, 1, 20, 1000)
		s.latency = exponential(mean)
		var in, last time.Duration
		draining, drains := false, 0
		from := max(20*time.Second, 200*mean) // from where the baseline is known
		s.settle = func(s *station) {
			if draining && s.now > from {
				in += s.now - last
			}
			if s.l.drain.active && !draining {
				drains++
			}
			draining, last = s.l.drain.active, s.now
		}
		until := from + max(60*time.Second, 400*mean)
		s.run(until)
		if share := float64(in) / float64(until-from); share > 0.1 || drains < 2 {
			t.Errorf("calls of %v: %d drains, %.3f of the time", mean, drains, share)
		}
	}
}

func TestTheSameCallsGiveTheSameLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		twin := New(s.l.cfg, 0)
		first := *s
		var states []State
		record := func(s *station) { states = append(states, s.l.State()) }
		s.settle = record
		start := s.random
		seed := start.Uint64()
		s.random = rand.New(rand.NewPCG(seed, 2))
		s.run(span)
		once := states
		states = nil
		again := s
		*again = first
		again.settle, again.l = record, twin
		again.busy = make([]time.Duration, again.servers)
		again.random = rand.New(rand.NewPCG(seed, 2))
		again.run(span)
		if len(states) != len(once) {
			t.Fatalf("%d states, then %d", len(once), len(states))
		}
		for i := range states {
			if states[i] != once[i] {
				t.Fatalf("%+v, then %+v", once[i], states[i])
			}
		}
	})
}

func TestWithoutASuccessNothingIsKeptBackAndNoLatencyLearnt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		s.fate = func(s *station) (Outcome, time.Duration) {
			return rapid.SampledFrom([]Outcome{Failed, Throttled, Ignored}).Draw(t, "outcome"), time.Millisecond
		}
		s.want = min(s.want, 10)
		limit := s.l.limit
		s.settle = func(s *station) {
			for _, c := range s.calls {
				if c.free {
					t.Fatalf("at %v a permit is kept back", s.now)
				}
			}
			if s.l.limit > limit || s.l.mean != 0 || s.l.baseline.known || s.l.reason == Queue {
				t.Fatalf("at %v: %+v", s.now, s.l.State())
			}
			limit = s.l.limit
		}
		s.run(50 * time.Millisecond)
	})
}

// Who steps a limiter when it asks for it does not spin: at most one more step
// falls into the same instant.
func TestStepAsksForALaterTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, anyConfig(t))
		s.settle = func(s *station) {
			for range 2 {
				if next := s.l.Step(s.now); next == 0 || next > s.now {
					return
				}
			}
			t.Fatalf("at %v: it wants to be stepped at once for ever", s.now)
		}
		s.run(span)
	})
}
