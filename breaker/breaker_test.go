package breaker

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const s = time.Second

func tripped(t *testing.T, cfg Config) *Circuit {
	t.Helper()
	c := New(cfg)
	for range 10 {
		c.End(0, c.Start(0), Failure)
	}
	if c.State(0) != Open {
		t.Fatalf("after 10 failures: %s", c.State(0))
	}
	return c
}

func TestOpensAtTheShareOfFailures(t *testing.T) {
	c := New(Config{Failures: 0.5})
	for i := range 9 {
		if c.End(0, c.Start(0), Failure) || c.State(0) != Closed {
			t.Fatalf("open after %d calls", i+1)
		}
	}
	if !c.End(0, c.Start(0), Failure) || c.State(0) != Open || c.Ready(s) != 5*s {
		t.Fatalf("after 10 failures: %s, ready %v", c.State(0), c.Ready(s))
	}
	c = New(Config{Failures: 0.5})
	for i := range 1000 {
		r := Success
		if i%3 == 2 {
			r = Failure
		}
		if c.End(time.Duration(i)*s/20, c.Start(0), r) {
			t.Fatal("a third of failures opened it")
		}
	}
}

// A call that started before the circuit opened says nothing about the probe:
// its late success must not close the circuit, its failure must not open it.
func TestLateResultsAreIgnored(t *testing.T) {
	for _, late := range []Result{Ignored, Success, Failure} {
		c := New(Config{Failures: 0.5})
		old := c.Start(0)
		for range 10 {
			c.End(0, c.Start(0), Failure)
		}
		c.End(s, old, late)
		if c.State(s) != Open {
			t.Fatalf("open: late %d made it %s", late, c.State(s))
		}
		probe := c.Start(5 * s)
		c.End(5*s, old, late)
		if c.State(5*s) != HalfOpen || c.Ready(5*s) != 65*s {
			t.Fatalf("half-open: late %d made it %s", late, c.State(5*s))
		}
		c.End(6*s, probe, Success)
		c.End(6*s, old, Failure)
		if c.State(6*s) != Closed {
			t.Fatalf("closed: late %d made it %s", late, c.State(6*s))
		}
	}
}

// A probe that never ends does not keep the circuit half-open for ever
// (sony/gobreaker's half-open state has no lease), and one that is cancelled
// makes room for the next (sony/gobreaker#105).
func TestProbeIsALease(t *testing.T) {
	c := tripped(t, Config{Failures: 0.5, Lease: 10 * s})
	lost := c.Start(5 * s)
	if c.Ready(6*s) != 15*s {
		t.Fatalf("while the probe is out: ready %v", c.Ready(6*s))
	}
	next := c.Start(15 * s)
	c.End(16*s, lost, Success)
	if c.State(16*s) != HalfOpen {
		t.Fatal("a probe without a lease closed the circuit")
	}
	c.End(16*s, next, Ignored)
	if c.Ready(16*s) != 16*s {
		t.Fatal("a cancelled probe holds its place")
	}
	c.End(17*s, c.Start(16*s), Success)
	if c.State(17*s) != Closed {
		t.Fatalf("after a success: %s", c.State(17*s))
	}
}

// One probe that ends three times is one success.
func TestEndCountsOnce(t *testing.T) {
	c := tripped(t, Config{Failures: 0.5, Probes: 3})
	probe := c.Start(5 * s)
	for range 3 {
		c.End(5*s, probe, Success)
	}
	if c.State(5*s) != HalfOpen {
		t.Fatal("one probe closed a circuit that wants three")
	}
	for range 2 {
		c.End(5*s, c.Start(5*s), Success)
	}
	if c.State(5*s) != Closed {
		t.Fatal("three probes did not close it")
	}
	c = tripped(t, Config{Failures: 0.5, Probes: 3})
	c.End(5*s, c.Start(5*s), Success)
	c.End(5*s, c.Start(5*s), Failure)
	if c.State(5*s) != Open || c.Ready(5*s) != 10*s {
		t.Fatal("a failed probe did not open it again")
	}
}

// The window forgets, whatever the times: against a list of all results.
func TestWindowAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Failures: 0.5, Window: 10 * s, Calls: rapid.IntRange(1, 8).Draw(t, "calls"), Open: s}
		c := New(cfg)
		type result struct {
			slice int64
			bad   bool
		}
		var all []result
		now := time.Duration(0)
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now += time.Duration(rapid.Int64Range(0, int64(4*s)).Draw(t, "dt"))
			bad := rapid.Bool().Draw(t, "bad")
			r := Success
			if bad {
				r = Failure
			}
			all = append(all, result{int64(now / s), bad})
			calls, failures := 0, 0
			for _, e := range all {
				if e.slice > int64(now/s)-slices {
					calls++
					if e.bad {
						failures++
					}
				}
			}
			want := calls >= cfg.Calls && 2*failures >= calls
			if got := c.End(now, c.Start(now), r); got != want {
				t.Fatalf("at %v: opened %v, want %v (%d of %d)", now, got, want, failures, calls)
			}
			if want {
				return
			}
		}
	})
}

func TestCheck(t *testing.T) {
	for _, bad := range []Config{{Failures: -1}, {Failures: 2}, {Window: -1}, {Calls: -1}, {Open: -1}, {Probes: -1}, {Lease: -1}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if err := (Config{}).Check(); err != nil {
		t.Error(err)
	}
}

func Example() {
	c := New(Config{Failures: 0.5, Calls: 2, Open: 5 * time.Second})
	now := time.Duration(0)
	for range 2 {
		c.End(now, c.Start(now), Failure)
	}
	fmt.Println(c.State(now), c.Ready(now))
	now = 5 * time.Second
	probe := c.Start(now)
	c.End(now, probe, Success)
	fmt.Println(c.State(now))
	// Output:
	// open 5s
	// closed
}
