package main

import (
	"syscall"
	"time"
)

// callerTime is the processor time of the calling thread: what others do to the
// machine is not in it.
func callerTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	must(syscall.Getrusage(thread, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
