package adaptive

import "testing"

// Envoy had a floor below which the limit fell all the same, and Netflix a
// start above the maximum (envoyproxy/envoy#9947, Netflix/concurrency-limits#199).
func TestConfigOutOfOrderIsRefused(t *testing.T) {
	for _, c := range []Config{
		{Min: -1}, {Max: -1}, {Initial: -1},
		{Min: 50, Max: 5}, {Min: 2000},
		{Max: 50, Initial: 100}, {Min: 5, Initial: 4},
		{Backoff: 1}, {Backoff: -0.5},
		{Algorithm: "vegas"},
	} {
		if c.Check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	for _, c := range []Config{{}, {Max: 5}, {Min: 50}, {Min: 5, Max: 50, Initial: 50}, {Algorithm: AIMD, Backoff: 0.5}} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestInitialIsTwentyOrTheNearestBound(t *testing.T) {
	for c, want := range map[Config]int{{}: 20, {Max: 5}: 5, {Min: 50}: 50, {Initial: 7}: 7} {
		if got := New(c, 0).Limit(); got != want {
			t.Errorf("%+v starts at %d, not %d", c, got, want)
		}
	}
}
