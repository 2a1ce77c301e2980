package rate

import (
	"sync/atomic"
	"time"

	"github.com/metehq/mete/internal/meter"
)

// quick is a bucket in one word, so that a grant is one compare-and-swap and a
// refusal writes nothing: the generic cell rate algorithm (ITU-T I.371) on the
// time at which the bucket is full again. It is open while nobody is in line
// and no grant can be given back, for then that time is all there is to know.
// Whoever needs more takes the lock, which closes it and moves the time to the
// meter. There is one only where a unit takes a whole number of nanoseconds to
// flow in. It does not change: Set makes a new one.
type quick struct {
	state              atomic.Int64 // when the bucket is full << 1 | closed
	burst              int64
	unit, full, credit time.Duration
}

const closed = 1

// horizon is the longest uptime and the longest time to fill that leave a bit.
const horizon = maxPer / 2

// newQuick returns a closed quick for the meter, or nil if it cannot have one.
func newQuick(m meter.Meter) *quick {
	b, ok := m.(*meter.Bucket)
	if !ok {
		return nil
	}
	s := b.Spec()
	if s.N == 0 || int64(s.Per)%s.N != 0 || int64(horizon)/s.Burst < int64(s.Per)/s.N {
		return nil
	}
	unit := s.Per / time.Duration(s.N)
	q := &quick{burst: s.Burst, unit: unit, full: time.Duration(s.Burst) * unit, credit: b.Credit()}
	q.state.Store(closed)
	return q
}

// take takes n units at now if they are there. It is not decided if the quick
// is closed, or if more is taken than there was at now, which is no debt but a
// clock that has gone back, or was read too long ago.
func (q *quick) take(now time.Duration, n int64) (ok, decided bool) {
	if n > q.burst {
		return false, true
	}
	cost := time.Duration(n) * q.unit
	for {
		state := q.state.Load()
		if state&closed != 0 || now > horizon {
			return false, false
		}
		due := time.Duration(state >> 1)
		if due-q.full+cost > now {
			return false, due-q.full <= now
		}
		if due < now-q.credit {
			due = now
		}
		if q.state.CompareAndSwap(state, int64(due+cost)<<1) {
			return true, true
		}
	}
}

// lock takes the limiter's mutex and closes quick.
func (l *Limiter) lock() {
	l.mu.Lock()
	if l.quick.Load() != nil {
		l.closeQuick()
	}
}

func (l *Limiter) closeQuick() {
	q := l.quick.Load()
	state := q.state.Or(closed)
	if state&closed == 0 {
		due := time.Duration(state >> 1)
		l.meter.(*meter.Bucket).SetDue(due)
		l.last = max(l.last, due-q.full) // something was granted then, or later
	}
}

// unlock releases the limiter's mutex and opens quick if it can be open, which
// is not before a debt is paid.
func (l *Limiter) unlock() {
	if q := l.quick.Load(); q != nil && l.line.n == 0 {
		if due, ok := l.meter.(*meter.Bucket).Due(); ok && due-q.full <= l.last && l.last <= horizon {
			q.state.Store(int64(due) << 1)
		}
	}
	l.mu.Unlock()
}
