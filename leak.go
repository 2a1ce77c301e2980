package mete

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// lease is what is known of a permit that may be lost: enough to give it back.
// It must not refer to the permit.
type lease struct {
	gate   *Gate
	lane   *lane
	weight int64
	stack  [24]uintptr
	depth  int
}

// watch reports and returns the permit if it is garbage-collected before it was
// released. An attempt's context holds its permit, so that is watched.
func (p *Permit) watch() {
	l := &lease{gate: p.gate, lane: p.lane, weight: p.weight}
	l.depth = runtime.Callers(4, l.stack[:])
	var c runtime.Cleanup
	if p.attempt != nil {
		c = runtime.AddCleanup(p.attempt, (*lease).lost, l)
	} else {
		c = runtime.AddCleanup(p, (*lease).lost, l)
	}
	p.cleanup = &c
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
	if jump := time.Since(g.base) - g.last; jump < 0 || jump > anotherClock {
		g.mu.Unlock()
	} else {
		g.stepAndUnlock(g.now())
	}
	if o := g.cfg.Load().Observer; o != nil && o.Leaked != nil {
		o.Leaked(g.name, l.where())
	}
}

// reclaim takes lost permits back. The caller holds the lock.
func (g *Gate) reclaim() {
	for _, l := range g.lost {
		g.q.inUse -= l.weight
		l.lane.used -= l.weight
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
