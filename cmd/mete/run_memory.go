package main

import (
	"os"
	"runtime/debug"
)

// ballast is never touched, so it takes addresses and no memory; the garbage
// collector takes it for part of the heap.
type ballast []byte

// lean makes the garbage collector keep less memory in hand than usual: a run
// holds some tables that grow with its rows and little else. But of a heap of a
// few megabytes that would be next to nothing, and a hundred collections a
// second. Go has no least heap to set (golang/go#23044), hence the ballast: as
// long as it is kept alive, some 20 MB are allocated from one collection to the
// next. A user's own GOGC counts more.
func lean() ballast {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(30)
	return make(ballast, 64<<20)
}

// afterScan gives the memory of the first pass over the input back before the
// second one needs it.
func afterScan() { debug.FreeOSMemory() }
