package rate

import (
	"sync/atomic"
	"time"
)

// denial lets Allow say no without the lock and without writing: from since
// on and before until, units or more are not admitted. Whatever could make
// something start earlier lifts it first.
//
// The three words are read as one by a sequence lock: seq is odd while they
// change (Boehm, "Can Seqlocks Get Along With Programming Language Memory
// Models?", MSPC 2012). Writers hold the limiter's mutex.
type denial struct {
	seq                 atomic.Uint32
	since, until, units atomic.Int64
}

// read returns a consistent denial; until is 0 if there is none. A reader that
// meets a writer sees none, and asks under the lock.
func (d *denial) read() (since, until time.Duration, units int64) {
	seq := d.seq.Load()
	since, until = time.Duration(d.since.Load()), time.Duration(d.until.Load())
	units = d.units.Load()
	if seq&1 != 0 || d.seq.Load() != seq {
		return 0, 0, 0
	}
	return since, until, units
}

// set puts a denial in force. The caller holds the limiter's mutex.
func (d *denial) set(since, until time.Duration, units int64) {
	d.seq.Add(1)
	d.since.Store(int64(since))
	d.until.Store(int64(until))
	d.units.Store(units)
	d.seq.Add(1)
}

// lift takes the denial back. The caller holds the limiter's mutex.
func (d *denial) lift() {
	if d.until.Load() != 0 {
		d.set(0, 0, 0)
	}
}
