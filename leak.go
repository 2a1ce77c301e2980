package mete

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/metehq/mete/adaptive"
)

// lease is what is known of a permit that may be lost: enough to give it back.
// It must not refer to the permit.
type lease struct {
	gate    *Gate
	lane    *lane
	weight  int64
	granted time.Duration
	paid    []payment
	sample  *sample
	cleanup runtime.Cleanup
	stack   [24]uintptr
	depth   int
}

// watch reports and returns the permit if it is garbage-collected before it was
// released. Where an attempt's context holds it, they are one object.
func (p *Permit) watch() {
	f := p.flight
	l := &lease{gate: p.gate, lane: f.lane, weight: f.weight, granted: f.granted, paid: f.paid, sample: f.sample}
	l.depth = runtime.Callers(5, l.stack[:])
	l.cleanup = runtime.AddCleanup(p, (*lease).lost, l)
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	f.lease = l
	p.gate.q.leases.add(l)
}

// leases are those of the permits that are held and watched.
type leases map[*lease]bool

func (ls *leases) add(l *lease) {
	if *ls == nil {
		*ls = leases{}
	}
	(*ls)[l] = true
}

// end forgets the lease of a permit that was released; nil is none.
func (ls leases) end(l *lease) {
	if l != nil {
		l.cleanup.Stop()
		delete(ls, l)
	}
}

// oldest is the lease that was granted first; nil if there is none.
func (ls leases) oldest() (first *lease) {
	for l := range ls {
		if first == nil || l.granted < first.granted {
			first = l
		}
	}
	return first
}

// anotherClock is a jump of the time that only a change of clocks makes.
const anotherClock = 365 * 24 * time.Hour

// lost runs in the garbage collector's goroutine. That belongs to no synctest
// bubble: a gate that lives in one, as its clock tells, must not be woken from
// here, and takes the permit back at its next operation.
func (l *lease) lost() {
	g := l.gate
	g.mu.Lock()
	g.leaks++
	g.lost = append(g.lost, l)
	delete(g.q.leases, l)
	if jump := time.Since(g.base) + g.shift - g.last; jump < 0 || jump > anotherClock {
		g.mu.Unlock()
	} else {
		g.stepAndUnlock(g.now())
	}
	if o := g.cfg.Load().Observer; o != nil && o.Leaked != nil {
		o.Leaked(g.name, l.where())
	}
}

// reclaim takes lost permits back. Whether an attempt that has no stamp was sent
// is not known: it counts as sent now, or it would lie in every window for good.
// The caller holds the lock.
func (g *Gate) reclaim(now time.Duration) {
	for _, l := range g.lost {
		g.q.giveBack(l.lane, l.weight)
		for i := range l.paid {
			l.paid[i].meter.Sent(now, &l.paid[i].charge)
		}
		l.sample.told(adaptive.Ignored)
		l.sample.done(now)
	}
	g.lost = nil
}

// where is the stack at which the permit was taken.
func (l *lease) where() string {
	var b strings.Builder
	frames := runtime.CallersFrames(l.stack[:l.depth])
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// caller is the place in the user's code at which the permit was taken.
func (l *lease) caller() string {
	frames := runtime.CallersFrames(l.stack[:l.depth])
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, module+".") || strings.HasPrefix(f.Function, module+"/")
		if !own || strings.HasSuffix(f.File, "_test.go") || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}

const module = "github.com/metehq/mete"
