package adaptive

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Faults of other limiters, from public reports.

func constant(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func always(o Outcome, after time.Duration) func(*station) (Outcome, time.Duration) {
	return func(*station) (Outcome, time.Duration) { return o, after }
}

// platinummonkey/go-concurrency-limits#141: only successes led to a new limit,
// so that it stayed high while everything failed.
func TestTotalFailureLowersTheLimit(t *testing.T) {
	for _, cfg := range []Config{
		{Algorithm: AIMD, Initial: 100, Backoff: 0.5},
		{Algorithm: Knee, Initial: 100},
		{Algorithm: Failures, Initial: 100},
	} {
		s := newStation(cfg, 1, 0, 1000)
		s.fate = always(Failed, 30*time.Millisecond)
		decreases, limit := 0, s.l.Limit()
		s.settle = func(s *station) {
			if n := s.l.Limit(); n < limit {
				decreases, limit = decreases+1, n
			} else if n > limit {
				t.Fatalf("%s: the limit rises from %d to %d", cfg.Algorithm, limit, n)
			}
		}
		s.run(5 * time.Second)
		if limit != 1 || decreases > 7 {
			t.Errorf("%s: the limit is %d after %d decreases", cfg.Algorithm, limit, decreases)
		}
	}
}

// Netflix/concurrency-limits#137: calls that all take exactly the timeout
// looked like a stable latency, and the limit rose to its maximum.
func TestTimeoutsAreNoLatency(t *testing.T) {
	for _, algorithm := range []Algorithm{Knee, Failures, AIMD} {
		s := newStation(Config{Algorithm: algorithm}, 1, 20, 1000)
		s.run(5 * time.Second)
		baseline := s.l.State().Baseline
		s.fate = always(Failed, 5*time.Second)
		ended := 0
		s.settle = func(s *station) { ended++ }
		limit := s.l.Limit()
		s.run(15 * time.Minute)
		if n := s.l.Limit(); n != 1 {
			t.Errorf("%s: %d events after a limit of %d it is %d", algorithm, ended, limit, n)
		}
		if after := s.l.State().Baseline; after != baseline {
			t.Errorf("%s: the baseline went from %v to %v", algorithm, baseline, after)
		}
	}
}

// Netflix/concurrency-limits#65, palantir/dialogue#641: the limit drifted to
// its maximum at night, when nobody needed it.
func TestUnusedLimitDoesNotGrow(t *testing.T) {
	for _, algorithm := range []Algorithm{Knee, Failures, AIMD} {
		s := newStation(Config{Algorithm: algorithm}, 1, 0, 1)
		s.latency = constant(10 * time.Millisecond)
		s.run(10000 * 10 * time.Millisecond)
		if n := s.l.Limit(); n != 20 {
			t.Errorf("%s: after a night of one call at a time the limit is %d", algorithm, n)
		}
	}
}

// Netflix/concurrency-limits#176, scrapy/scrapy#6458: answers of 503 in 2 ms
// were taken for a provider that had become fast.
func TestFastErrorsAreNotSpeed(t *testing.T) {
	for _, algorithm := range []Algorithm{Knee, Failures, AIMD} {
		s := newStation(Config{Algorithm: algorithm, Initial: 10}, 1, 10, 8)
		s.latency = constant(200 * time.Millisecond)
		s.run(20 * time.Second)
		baseline, limit := s.l.State().Baseline, s.l.Limit()
		if algorithm == Knee && (baseline < 180*time.Millisecond || baseline > 220*time.Millisecond) {
			t.Errorf("the baseline of calls of 200 ms is %v", baseline)
		}
		s.want = 1000
		s.fate = always(Failed, 2*time.Millisecond)
		s.run(s.now + 5*time.Second)
		if n := s.l.Limit(); n >= limit {
			t.Errorf("%s: errors led the limit from %d to %d", algorithm, limit, n)
		}
		if after := s.l.State().Baseline; after != baseline {
			t.Errorf("%s: errors led the baseline from %v to %v", algorithm, baseline, after)
		}
	}
}

// sony/gobreaker#105, apache/brpc#3532: users who went away, and the losers of
// hedging, counted as failures of a healthy service.
func TestCancelledCallsAreNoFailures(t *testing.T) {
	for _, algorithm := range []Algorithm{Knee, Failures, AIMD} {
		s := newStation(Config{Algorithm: algorithm}, 1, 0, 9)
		s.latency = constant(100 * time.Millisecond)
		s.run(2 * time.Second)
		before := s.l.State()
		s.fate = always(Ignored, 10*time.Millisecond)
		s.run(s.now + 500*10*time.Millisecond/9)
		if after := s.l.State(); after.Limit != before.Limit || after.Baseline != before.Baseline || after.Ceiling != 0 {
			t.Errorf("%s: %+v became %+v", algorithm, before, after)
		}
	}
}

// envoyproxy/envoy#9947: the limit fell below the least that was configured.
func TestFloorHolds(t *testing.T) {
	for _, algorithm := range []Algorithm{Knee, Failures, AIMD} {
		s := newStation(Config{Algorithm: algorithm, Min: 5, Max: 50}, 1, 0, 1000)
		s.run(time.Second)
		s.fate = always(Failed, time.Millisecond)
		s.settle = func(s *station) {
			if s.l.Limit() < 5 {
				t.Fatalf("%s: the limit is %d", algorithm, s.l.Limit())
			}
		}
		s.run(20 * time.Second)
		if n := s.l.Limit(); n != 5 {
			t.Errorf("%s: after nothing but errors the limit is %d", algorithm, n)
		}
	}
}

// Netflix/concurrency-limits#37: one lucky latency made every other call of a
// wide distribution look queued, and the limit stuck.
func TestLuckyCallsDoNotHoldTheLimitDown(t *testing.T) {
	s := newStation(Config{Initial: 4}, 1, 100, 1000)
	s.latency = func(r *rand.Rand) time.Duration {
		if r.Float64() < 0.01 {
			return 150 * time.Millisecond
		}
		return 300 * time.Millisecond
	}
	s.run(30 * time.Second)
	if n := s.l.State().Limit; n < 100 {
		t.Errorf("the limit for 100 servers is %.0f", n)
	}
}

// vectordotdev/vector#3255 asked for a fast recovery: additive growth takes as
// many round trips as there are permits.
func TestOutageIsLeftQuickly(t *testing.T) {
	s := newStation(Config{}, 1, 20, 1000)
	s.run(15 * time.Second)
	before := s.l.limit
	s.fate = always(Failed, 2*time.Millisecond)
	s.run(25 * time.Second)
	if s.l.Limit() != 1 {
		t.Fatalf("the limit in an outage is %d", s.l.Limit())
	}
	s.fate = nil
	s.run(28 * time.Second)
	if s.l.limit < 0.6*before {
		t.Errorf("3 s after an outage the limit is %.1f, %.1f before", s.l.limit, before)
	}
}

// failsafe-go/failsafe-go#127: the baseline followed an overload.
func TestBaselineDoesNotFollowAnOverload(t *testing.T) {
	s := newStation(Config{}, 1, 20, 1000)
	s.run(15 * time.Second)
	before := s.l.baseline.value
	// Callers of others: half of the servers are gone for five minutes.
	s.busy = s.busy[:10]
	s.run(5 * time.Minute)
	if after := s.l.baseline.value; after > 1.4*before {
		t.Errorf("the baseline went from %.3f s to %.3f s", before, after)
	}
	if n := s.l.limit; n > 20 {
		t.Errorf("the limit for 10 servers is %.1f", n)
	}
}

func TestRefusalsTeachARate(t *testing.T) {
	// A quota of 100 a second, at a provider that could serve 400.
	s := newStation(Config{}, 1, 20, 15)
	tokens, filled := 10.0, time.Duration(0)
	s.fate = func(s *station) (Outcome, time.Duration) {
		tokens = min(10, tokens+100*(s.now-filled).Seconds())
		filled = s.now
		if tokens < 1 {
			return Throttled, time.Millisecond
		}
		tokens--
		return Success, 0
	}
	limit := s.l.Limit()
	s.run(5 * time.Second)
	if r := s.l.Rate(); r < 95 || r > 106 {
		t.Errorf("a quota of 100/s taught %.1f/s", r)
	}
	if n := s.l.Limit(); n != limit {
		t.Errorf("a quota led the limit from %d to %d", limit, n)
	}
}

func TestRefusalsThatNoRateEndsLowerTheLimit(t *testing.T) {
	// At most 40 calls at once, else 429; rates do not matter.
	s := newStation(Config{Initial: 60}, 1, 0, 1000)
	s.latency = exponential(500 * time.Millisecond)
	s.fate = func(s *station) (Outcome, time.Duration) {
		served := 0
		for _, c := range s.calls {
			if !c.free && c.o == Success {
				served++
			}
		}
		if served >= 40 {
			return Throttled, time.Millisecond
		}
		return Success, 0
	}
	sum, n := 0.0, 0.0
	s.settle = func(s *station) {
		if s.now > time.Minute {
			sum, n = sum+s.l.limit, n+1
		}
	}
	s.run(2 * time.Minute)
	if mean := sum / n; mean < 28 || mean > 48 {
		t.Errorf("the limit of a provider that takes 40 at once is %.1f on average", mean)
	}
	if r := s.l.Rate(); r != 0 {
		t.Errorf("and a rate of %.1f/s is kept", r)
	}
}

// Random errors say nothing about load; no cut helps, so cuts are taken back.
func TestCutsInVainAreTakenBack(t *testing.T) {
	s := newStation(Config{}, 1, 20, 1000)
	s.fate = func(s *station) (Outcome, time.Duration) {
		if s.random.Float64() < 0.05 {
			return Failed, time.Duration(1 + s.random.Int64N(int64(100*time.Millisecond)))
		}
		return Success, 0
	}
	sum, n := 0.0, 0.0
	s.settle = func(s *station) {
		if s.now > 20*time.Second {
			sum, n = sum+s.l.limit, n+1
		}
	}
	s.run(60 * time.Second)
	if sum/n < 20 {
		t.Errorf("with 5 %% of random errors the limit is %.1f on average", sum/n)
	}
	if tol := s.l.State().Tolerance; tol < 0.05 || tol > 0.2 {
		t.Errorf("%v of failures are tolerated", tol)
	}
}

// A program with a fixed number of workers, more than the provider has
// servers but fewer than there are permits, is limited all the same.
func TestFixedNumberOfWorkersIsLimited(t *testing.T) {
	s := newStation(Config{}, 1, 8, 50)
	s.run(2 * time.Minute)
	if n := s.l.limit; n > 24 {
		t.Errorf("50 workers at 8 servers have a limit of %.1f", n)
	}
}

// A provider that suddenly has half its capacity looks like calls that take
// longer for reasons outside: as many in flight, half the throughput, twice the
// latency. Only a drain tells, and one every ten seconds came too late.
func TestLostCapacityIsNoticedWithinSeconds(t *testing.T) {
	for _, at := range []time.Duration{21 * time.Second, 23 * time.Second, 25 * time.Second} {
		s := newStation(Config{}, 1, 32, 1000)
		s.latency = constant(50 * time.Millisecond)
		s.run(at)
		if n := s.l.Limit(); n < 32 || n > 48 {
			t.Fatalf("with 32 servers the limit is %d", n)
		}
		s.servers, s.busy = 16, s.busy[:16]
		s.run(at + 5*time.Second)
		if n := s.l.limit; n < 16 || n > 26 {
			t.Errorf("5 s after 16 of 32 servers are gone, at %v, the limit is %.1f: %+v", at, n, s.l.State())
		}
	}
}

// The state tells what is seen: of 20 servers of 50 ms that are kept busy, their
// 400 calls per second, a queue near its target, and drains now and then.
func TestStateTellsWhatIsSeen(t *testing.T) {
	s := newStation(Config{}, 1, 20, 1000)
	drains, reasons := 0, map[Reason]bool{}
	s.settle = func(s *station) {
		now := s.l.State()
		reasons[now.Reason] = true
		if now.Draining {
			drains++
			if float64(now.Permits) > now.Limit {
				t.Fatalf("a drain with more permits than the limit: %+v", now)
			}
		}
	}
	s.run(time.Minute)
	now := s.l.State()
	if now.Throughput < 280 || now.Throughput > 500 || now.Queue < 0 || now.Queue > 3*now.Target {
		t.Errorf("throughput and queue: %+v", now)
	}
	if now.Median < now.Baseline || now.Baseline < 30*time.Millisecond || now.Baseline > 60*time.Millisecond {
		t.Errorf("latencies: %+v", now)
	}
	if drains == 0 || !reasons[Start] || !reasons[Growth] || !reasons[Drain] {
		t.Errorf("%d steps of drains, reasons %v", drains, reasons)
	}
}
