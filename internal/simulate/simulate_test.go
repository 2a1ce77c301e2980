package simulate

import (
	"testing"
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

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	sc, a := scenario(t, "S9"), algorithm(t, "vegas")
	first := Run(sc, a, 7)
	if again := Run(sc, a, 7); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	if other := Run(sc, a, 8); other == first {
		t.Errorf("another seed gives the same %+v", other)
	}
}
