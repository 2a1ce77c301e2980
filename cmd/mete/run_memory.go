package main

import (
	"os"
	"runtime/debug"
)

// lean makes the garbage collector keep less memory in hand than usual: a run
// holds some tables that grow with its rows and little else. A user's own GOGC
// counts more.
func lean() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(30)
	}
}

// afterScan gives the memory of the first pass over the input back before the
// second one needs it.
func afterScan() { debug.FreeOSMemory() }
