package tune

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// provider answers in latency as long as no more than knee calls are in
// flight; beyond, latency grows in proportion. It lets rate calls start per
// second, if that is not 0.
type provider struct {
	latency time.Duration
	knee    int
	rate    float64
	refuse  int // more in flight than this are refused; 0 is none
	noise   float64
	rng     *rand.Rand
}

func (p provider) chunk(permits int) Chunk {
	busy := float64(permits) / math.Max(1, float64(permits)/float64(p.knee))
	most := busy / p.latency.Seconds()
	got := most
	inFlight := float64(permits)
	if p.rate > 0 && p.rate < most {
		got, inFlight = p.rate, p.rate*p.latency.Seconds()
	}
	if p.noise > 0 {
		got *= 1 + p.noise*(2*p.rng.Float64()-1)
	}
	_, n := Rows(permits)
	latency := time.Duration(inFlight / got * float64(time.Second))
	c := Chunk{Permits: permits, Rows: n, Duration: time.Duration(float64(n) / got * float64(time.Second)), Latency: latency, P50: latency, P95: latency}
	if p.rate > 0 && p.rate < most {
		c.Limiter = latency
	} else {
		c.Semaphore = latency
	}
	if p.refuse > 0 && permits > p.refuse {
		c.Throttled = n / 4
		c.Failed = n / 4
	}
	return c
}

// experiment runs a search to its end and reports the rows it took.
func experiment(t interface{ Fatalf(string, ...any) }, s *Search, p provider) (rows int64) {
	for i := 0; ; i++ {
		n := s.Next()
		if n == 0 {
			return rows
		}
		if i > 16 {
			t.Fatalf("no end after %d chunks: %+v", i, s.Chunks())
		}
		settle, measure := Rows(n)
		rows += settle + measure
		s.Add(p.chunk(n))
	}
}

func TestKneeIsFoundWithinAQuarter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := provider{
			latency: time.Duration(rapid.IntRange(1, 8000).Draw(t, "latency")) * time.Millisecond,
			knee:    rapid.IntRange(4, 200).Draw(t, "knee"),
			noise:   0.08,
			rng:     rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		}
		s := &Search{}
		experiment(t, s, p)
		v := s.Verdict()
		if v.Knee == 0 || math.Abs(float64(v.Knee-p.knee)) > math.Max(float64(p.knee)/4, 1.5) {
			t.Fatalf("knee %d found as %+v after %+v", p.knee, v, s.Chunks())
		}
	})
}

func TestLimitDecides(t *testing.T) {
	s := &Search{Rate: 50}
	experiment(t, s, provider{latency: 200 * time.Millisecond, knee: 100, rate: 50})
	v := s.Verdict()
	if !v.Limited || v.Knee != 0 || v.Permits != 20 {
		t.Errorf("want 20 permits by the limit, got %+v", v)
	}
	if got := strings.Join(v.Evidence, " "); !strings.Contains(got, "50.0/s x 200ms = 10.0 in flight (Little), x 2 headroom = 20") {
		t.Errorf("the derivation is missing: %s", got)
	}
}

// A limit that nobody told of shows in refusals, and doubling ends there.
func TestRefusalsEndTheSearch(t *testing.T) {
	s := &Search{}
	experiment(t, s, provider{latency: 50 * time.Millisecond, knee: 1000, refuse: 30})
	for _, c := range s.Chunks() {
		if c.Permits > 64 {
			t.Errorf("went on to %d permits after refusals", c.Permits)
		}
	}
	if got := strings.Join(s.Verdict().Evidence, " "); !strings.Contains(got, "refused") {
		t.Errorf("refusals are not mentioned: %s", got)
	}
}

func TestMaxBoundsTheSearch(t *testing.T) {
	s := &Search{Max: 24}
	experiment(t, s, provider{latency: 50 * time.Millisecond, knee: 1000})
	v := s.Verdict()
	if v.Knee != 0 || v.Permits != 24 || !strings.Contains(v.Evidence[0], "still rising") {
		t.Errorf("got %+v", v)
	}
}

func TestNothingAnswered(t *testing.T) {
	s := &Search{}
	s.Add(Chunk{Permits: 4, Rows: 60, Failed: 60, Duration: time.Second})
	s.Next()
	if v := s.Verdict(); v.Permits != 0 || len(v.Evidence) != 1 {
		t.Errorf("got %+v", v)
	}
}

// The experiment costs a bounded number of rows: a few rounds per chunk.
func TestRowsAreFew(t *testing.T) {
	s := &Search{}
	rows := experiment(t, s, provider{latency: 50 * time.Millisecond, knee: 32})
	t.Logf("%d rows, %d chunks", rows, len(s.Chunks()))
	if rows > 1500 {
		t.Errorf("a knee of 32 took %d rows", rows)
	}
}
