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
			// Half of the results fall on the edge of a part of the window.
			now += time.Duration(rapid.Int64Range(0, 8).Draw(t, "halves")) * s / 2
			now += time.Duration(rapid.SampledFrom([]int64{0, 0, 1, int64(s) / 4, int64(s)/2 - 1}).Draw(t, "more"))
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

// Late failures neither keep an open circuit open for longer nor open one that
// has closed since, however many there are.
func TestLateFailuresDoNotAddUp(t *testing.T) {
	c := New(Config{Failures: 0.5})
	var old []Ticket
	for range 40 {
		old = append(old, c.Start(0))
	}
	late := func(now time.Duration) {
		t.Helper()
		for _, o := range old[10:] {
			if c.End(now, o, Failure) {
				t.Fatalf("at %v: a late failure opened it", now)
			}
		}
	}
	for _, o := range old[:10] {
		c.End(0, o, Failure)
	}
	late(s)
	if c.Ready(s) != 5*s {
		t.Fatalf("late failures moved the end to %v", c.Ready(s))
	}
	c.End(5*s, c.Start(5*s), Success)
	late(6 * s)
	if c.State(6*s) != Closed {
		t.Fatalf("late failures made it %s", c.State(6*s))
	}
}

// What was before a change of state is forgotten: the failures that opened the
// circuit do not open it again, nor does a probe of an earlier opening count.
func TestEveryStateBeginsAnew(t *testing.T) {
	c := tripped(t, Config{Failures: 0.5, Probes: 2})
	c.End(5*s, c.Start(5*s), Success)
	c.End(5*s, c.Start(5*s), Failure)
	c.End(10*s, c.Start(10*s), Success)
	if c.State(10*s) != HalfOpen {
		t.Fatal("a probe of the last opening was counted")
	}
	c.End(10*s, c.Start(10*s), Success)
	c = tripped(t, Config{Failures: 0.5})
	c.End(5*s, c.Start(5*s), Success)
	for i := range 9 {
		if c.End(5*s, c.Start(5*s), Failure) {
			t.Fatalf("opened by %d failures and older ones", i+1)
		}
	}
}

func TestIgnoredCallsAreNotCounted(t *testing.T) {
	c := New(Config{Failures: 0.5, Calls: 2})
	for range 10 {
		c.End(0, c.Start(0), Ignored)
	}
	if c.End(0, c.Start(0), Failure) {
		t.Error("one failure and ignored calls are the two that it wants")
	}
	if !c.End(0, c.Start(0), Failure) {
		t.Error("ignored calls count as successes")
	}
}

// Each default is what its comment says.
func TestDefaults(t *testing.T) {
	c := New(Config{Failures: 1})
	for i := range 9 {
		c.End(0, c.Start(0), Failure)
		if c.State(0) != Closed {
			t.Fatalf("open after %d calls", i+1)
		}
	}
	if !c.End(9*s, c.Start(9*s), Failure) {
		t.Error("ten failures within 9 s do not open it")
	}
	if c.State(14*s-1) != Open || c.State(14*s) != HalfOpen {
		t.Errorf("%s before and %s after 5 s", c.State(14*s-1), c.State(14*s))
	}
	c.Start(14 * s)
	if c.Ready(14*s) != 74*s {
		t.Errorf("the lease of a probe ends at %v", c.Ready(14*s))
	}
	c = New(Config{Failures: 1})
	for range 9 {
		c.End(0, c.Start(0), Failure)
	}
	if c.End(10*s, c.Start(10*s), Failure) {
		t.Error("failures of 10 s ago are counted")
	}
}

// A window that has changed is in force for the next result.
func TestUpdateOfTheWindow(t *testing.T) {
	c := New(Config{Failures: 1, Calls: 2, Window: 1000 * s})
	c.End(0, c.Start(0), Failure)
	c.Update(Config{Failures: 1, Calls: 2, Window: s})
	if c.End(2*s, c.Start(2*s), Failure) {
		t.Error("a failure of two windows ago is counted")
	}
	c.Update(Config{Failures: 1, Calls: 2, Window: 1000 * s})
	c.End(3*s, c.Start(3*s), Failure)
	if !c.End(500*s, c.Start(500*s), Failure) {
		t.Error("a failure of half a window ago is not counted")
	}
}

// The time of a success matters where it counts for something.
func TestCoarse(t *testing.T) {
	if !New(Config{}).Coarse(1000 * s) {
		t.Error("one that never opens wants the time")
	}
	c := New(Config{Failures: 1, Window: 100 * s})
	if !c.Coarse(s) || c.Coarse(s+1) {
		t.Error("a hundredth of the window is not the bound")
	}
	if c.Update(Config{Failures: 1, Window: 10 * s}); c.Coarse(s) {
		t.Error("the bound of a window that is no more")
	}
	c = tripped(t, Config{Failures: 1})
	c.Update(Config{})
	if c.Coarse(0) {
		t.Error("one that is open does not want the time")
	}
	c.End(5*s, c.Start(5*s), Success)
	if !c.Coarse(1000*s) || c.State(5*s) != Closed {
		t.Error("one that has closed for good wants the time")
	}
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
