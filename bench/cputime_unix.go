//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used of all processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
