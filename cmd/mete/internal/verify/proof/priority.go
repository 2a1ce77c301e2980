//go:build unix

package main

import (
	"context"
	"os/exec"
	"sync"
)

// Other work on the machine stops a process for tens of milliseconds, and a
// server that was stopped stamps its arrivals late. Where the user may, the
// servers run before everything else and mete and its disturbers before
// ordinary processes, as if the machine were theirs.
const (
	auditor  = "2"
	measured = "1"
)

var mayLead = sync.OnceValue(func() bool {
	return exec.Command("chrt", "--rr", auditor, "true").Run() == nil
})

// command is one that runs with a real-time priority where that is allowed.
// chrt becomes the program, so the process is the same.
func command(ctx context.Context, priority, name string, args ...string) *exec.Cmd {
	if mayLead() {
		name, args = "chrt", append([]string{"--rr", priority, name}, args...)
	}
	return exec.CommandContext(ctx, name, args...)
}

func (r *report) priorities() {
	if mayLead() {
		r.note("servers and mete run with real-time priority, so that other work here does not count")
	} else {
		r.note("no right to real-time priority: other work on this machine counts as well")
	}
}
