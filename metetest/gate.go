package metetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Gate returns a gate that looks for leaks (Config.FindLeaks) and, when the
// test ends, is checked by [PermitsConserved] and closed. A mistake in cfg ends
// the test. What looks for leaks costs a stack trace for each permit.
//
// The observer's Leaked is called by the garbage collector, outside any bubble.
// So a permit that is lost in a bubble while calls wait for it ends the whole
// test binary: nothing outside may wake them. The trace then names lease.lost.
func Gate(t TB, cfg mete.Config) *mete.Gate {
	t.Helper()
	var lost places
	cfg.FindLeaks = true
	cfg.Observer = lost.listen(cfg.Observer)
	g, err := mete.New(cfg)
	if err != nil {
		t.Fatalf("metetest: no gate: %v", err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		conserved(t, g, &lost)
		if err := g.Close(); err != nil {
			t.Errorf("metetest: closing gate %q: %v", g.Name(), err)
		}
	})
	return g
}

// PermitsConserved fails the test unless everything that the gate granted has
// come back, once, and nobody waits. Call it when all calls have ended.
//
// In a testing/synctest bubble it waits until every other goroutine of the
// bubble is blocked, and time stands still; elsewhere for up to a second. If
// permits are in use then, it runs the garbage collector, so that those that
// nobody can release any more count as lost; that needs Config.FindLeaks, as
// [Gate] sets it.
func PermitsConserved(t TB, g *mete.Gate) {
	t.Helper()
	conserved(t, g, nil)
}

func conserved(t TB, g *mete.Gate, lost *places) {
	t.Helper()
	settle(func() bool {
		s := g.Stats()
		return s.InUse == 0 && s.Waiting == 0
	})
	s := g.Stats()
	if s.Leaks > 0 || s.InUse > 0 && s.Waiting == 0 {
		// The gate counts a leak just before it tells of it.
		collect(func() bool {
			s = g.Stats()
			return s.InUse == 0 && (lost == nil || lost.len() >= int(s.Leaks))
		})
	}
	if s.InUse != 0 {
		t.Errorf("metetest: gate %q: %s still in use\n"+
			"  look at: a path without Release (an early return, a panic), a response's body that is neither read to its end nor closed, a call that still runs",
			s.Name, count(s.InUse, "permit is", "permits are"))
	}
	if s.Waiting != 0 {
		t.Errorf("metetest: gate %q: %s, for %s\n"+
			"  look at: calls whose context never ends; wait for them before the test does",
			s.Name, count(s.Waiting, "call still waits", "calls still wait"), s.Bound)
	}
	if s.Misuse != 0 {
		t.Errorf("metetest: gate %q: %s of a permit that was released before\n"+
			"  look at: Release beside Cancel or Again, and deferred as well as called",
			s.Name, count(int(s.Misuse), "release", "releases"))
	}
	if s.Leaks != 0 {
		t.Errorf("metetest: gate %q: %s lost: garbage-collected before they were released\n"+
			"  look at: where they were taken%s", s.Name, count(int(s.Leaks), "permit was", "permits were"), lost)
	}
}

// places are where lost permits were taken.
type places struct {
	mu     sync.Mutex
	stacks []string
}

// listen returns an observer that notes lost permits and tells o everything.
func (p *places) listen(o *mete.Observer) *mete.Observer {
	var all mete.Observer
	if o != nil {
		all = *o
	}
	tell := all.Leaked
	all.Leaked = func(gate, stack string) {
		p.mu.Lock()
		p.stacks = append(p.stacks, stack)
		p.mu.Unlock()
		if tell != nil {
			tell(gate, stack)
		}
	}
	return &all
}

func (p *places) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stacks)
}

// String is the places, each in lines of its own, the first three of them.
func (p *places) String() string {
	if p == nil {
		return " (a gate of metetest.Gate says where)"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for i, stack := range p.stacks {
		if i == 3 {
			fmt.Fprintf(&b, "\n  and %d more", len(p.stacks)-i)
			break
		}
		b.WriteString("\n    " + strings.ReplaceAll(strings.TrimSpace(stack), "\n", "\n    "))
	}
	return b.String()
}

// patience is for how long goroutines outside a bubble may need to come to rest.
const patience = time.Second

// settle waits until done, or in a bubble until nothing moves, or for patience.
func settle(done func() bool) {
	if done() || rest() {
		return
	}
	poll(done)
}

// poll asks until done, for patience.
func poll(done func() bool) {
	for end := time.Now().Add(patience); !done() && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
}
