package mete

import (
	"fmt"
	"runtime"
	"strings"
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

// lost runs in the garbage collector's goroutine.
func (l *lease) lost() {
	g := l.gate
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.q.inUse -= l.weight
	l.lane.used -= l.weight
	g.leaks++
	g.stepAndUnlock(now)
	if o := g.cfg.Load().Observer; o != nil && o.Leaked != nil {
		o.Leaked(g.name, l.where())
	}
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
