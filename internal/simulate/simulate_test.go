package simulate

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/internal/race"
)

func scenario(t *testing.T, name string) Scenario {
	t.Helper()
	for _, sc := range Scenarios() {
		if sc.Name == name {
			return sc
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return Scenario{}
}

func algorithm(t *testing.T, name string) Algorithm {
	t.Helper()
	for _, a := range Algorithms() {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("there is no algorithm %s", name)
	return Algorithm{}
}

// fixed is a limit that stays as it is.
type fixed int

func (f fixed) limit() int    { return int(f) }
func (f fixed) sample(sample) {}

func limited(n int) Algorithm {
	return Algorithm{"fixed", func(Setting) limiter { return &perSample{fixed(n)} }}
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	t.Parallel()
	sc := scenario(t, "S9")
	for _, name := range []string{"vegas", Knee} {
		a := algorithm(t, name)
		first := Run(sc, a, 7)
		if again := Run(sc, a, 7); again != first {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
		if other := Run(sc, a, 8); other == first {
			t.Errorf("%s: another seed gives the same %+v", name, other)
		}
	}
}

// All permits are in use, so by Little's law the calls in flight, the permits,
// are the throughput times the mean latency; and more permits than the station
// needs give the optimum that the scenario claims, and no more.
func TestTheStationObeysLittlesLaw(t *testing.T) {
	t.Parallel()
	for _, permits := range []int{5, 20, 60} {
		sc := scenario(t, "S1")
		m := newMeter(sc)
		r := run(sc, limited(permits), 3, m)
		sum := time.Duration(0)
		for _, l := range m.latencies {
			sum += l
		}
		inFlight := sum.Seconds() / (sc.To - sc.From).Seconds()
		if math.Abs(inFlight/float64(permits)-1) > 0.01 {
			t.Errorf("%d permits: throughput x latency is %.2f", permits, inFlight)
		}
		// Below the knee each permit is worth one call per 52 ms.
		if want := min(1, float64(permits)/0.052/sc.Optimum); permits != 20 && math.Abs(r.Goodput-want) > 0.03 {
			t.Errorf("%d permits: goodput %.3f, want %.3f", permits, r.Goodput, want)
		}
	}
}

// Contention has its peak where the universal scalability law puts it.
func TestContentionHasAPeak(t *testing.T) {
	t.Parallel()
	sc := scenario(t, "S11")
	at := func(n int) float64 { return Run(sc, limited(n), 1).Goodput }
	low, peak, high := at(15), at(45), at(150)
	if math.Abs(peak-1) > 0.03 {
		t.Errorf("goodput %.3f at the peak", peak)
	}
	if low > 0.8 || high > 0.8 {
		t.Errorf("goodput %.3f well below the peak, %.3f well above it", low, high)
	}
}

// A quota grants what it says, whatever is asked of it.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"S6", "S6w"} {
		if r := Run(scenario(t, name), limited(200), 1); math.Abs(r.Goodput-1) > 0.01 {
			t.Errorf("%s: goodput %.3f", name, r.Goodput)
		}
	}
	// Twice as many as it serves at once are half refused.
	if r := Run(scenario(t, "S12"), limited(1000), 1); math.Abs(r.Throttled-0.5) > 0.05 {
		t.Errorf("S12: %.3f answered 429", r.Throttled)
	}
}

// AIMD per sample is known to grow until the provider's waiting room is full
// (Netflix/concurrency-limits#137 is of the same kind), and by the second to
// fall to nothing with 1 % of random errors.
func TestKnownWeaknessesShow(t *testing.T) {
	t.Parallel()
	r := Run(scenario(t, "S1"), algorithm(t, "aimd"), 1)
	if r.Goodput < 0.98 || math.Abs(r.P50-14) > 1 || math.Abs(r.Failed-0.046) > 0.01 {
		t.Errorf("aimd in S1: %+v", r)
	}
	if r := Run(scenario(t, "S9"), algorithm(t, "aimd-win"), 1); r.Goodput > 0.3 {
		t.Errorf("aimd-win in S9: %+v", r)
	}
	// Vegas takes a lucky call for the base (Netflix/concurrency-limits#37).
	if r := Run(scenario(t, "S1"), algorithm(t, "vegas"), 1); r.Goodput > 0.4 || r.Limit > 8 {
		t.Errorf("vegas in S1: %+v", r)
	}
}

// The figures, in so much as they are fast; `make simulate` shows them all and
// scripts/verify/75-simulate.sh proves them.
func TestKneeFigures(t *testing.T) {
	t.Parallel()
	names := []string{"S1", "S9", "S3", "S6"}
	if race.Enabled {
		names = names[:2]
	}
	for _, name := range names {
		Compare([]Scenario{scenario(t, name)}, []Algorithm{algorithm(t, Knee)}, 2, func(r Row) {
			for _, m := range r.Missed() {
				t.Error(m)
			}
		})
	}
}

// A figure that holds without a part of the algorithm would not guard it.
func TestEveryPartIsNeeded(t *testing.T) {
	t.Parallel()
	for i, a := range Ablations() {
		if race.Enabled && i > 0 {
			break
		}
		if a.Scenario == "S7" {
			continue // ten clients: left to the proof
		}
		Compare([]Scenario{scenario(t, a.Scenario)}, []Algorithm{a.Algorithm}, 1, func(r Row) {
			for _, m := range a.Needless(r) {
				t.Error(m)
			}
		})
	}
}

func TestAgendaIsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		var model []event
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(model) == 0 || rapid.Bool().Draw(t, "add") {
				e := event{at: time.Duration(rapid.IntRange(0, 20).Draw(t, "at"))}
				a.add(e)
				e.order = a.count
				model = append(model, e)
				continue
			}
			i := 0
			for j := range model {
				if model[j].before(&model[i]) {
					i = j
				}
			}
			if got := a.pop(); got != model[i] {
				t.Fatalf("got %+v, want %+v", got, model[i])
			}
			model = slices.Delete(model, i, i+1)
		}
	})
}
