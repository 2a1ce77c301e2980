package adaptive

import (
	"math"
	"time"
)

// throughput remembers the best throughput of late. If latency rises for
// reasons outside, the throughput of a fixed number of calls falls with it
// (Little's law), and fewer calls would make both worse. So latency lowers the
// limit only while throughput holds: BBR, too, keeps the greatest rate of the
// last round trips.
type throughput struct {
	now   average       // successes per second
	long  average       // the same, smoothed four times as much: its best is not mere luck
	best  [10]flow      // the greatest of each tenth of the time that counts
	slot  int64         // number of the newest tenth
	width time.Duration // of a tenth
}

// flow is a throughput, and the limit with which it was reached.
type flow struct{ rate, limit float64 }

// add takes a window's throughput; r is the mean latency in seconds.
func (t *throughput) add(now time.Duration, s summary, limit, r float64) {
	tau := max(0.5, 8*r)
	t.now.add(s.throughput, s.elapsed/tau)
	t.long.add(s.throughput, s.elapsed/tau/4)
	width := max(10*time.Second, duration(100*r)) / time.Duration(len(t.best))
	if width > 2*t.width || 2*width < t.width {
		// Another scale: what was best is kept as of now.
		best := t.greatest()
		clear(t.best[:])
		t.width, t.slot = width, int64(now/width)
		t.best[t.slot%int64(len(t.best))] = best
	}
	n := int64(now / t.width)
	if n-t.slot >= int64(len(t.best)) {
		clear(t.best[:])
		t.slot = n
	}
	for ; t.slot < n; t.slot++ {
		t.best[(t.slot+1)%int64(len(t.best))] = flow{}
	}
	if b := &t.best[n%int64(len(t.best))]; t.long.weight >= 0.2 && t.long.value > b.rate {
		*b = flow{t.long.value, limit}
	}
}

func (t *throughput) greatest() (best flow) {
	for _, f := range t.best {
		if f.rate > best.rate {
			best = f
		}
	}
	return best
}

// down reports whether throughput is well below its best, by now or clearly so
// in this one window, and not because of a limit that has grown since.
func (t *throughput) down(s summary, limit float64) bool {
	best := t.greatest()
	least := guard * best.rate
	low := t.now.value < least || s.throughput*(1+2/math.Sqrt(float64(s.n))) < least
	return low && limit < 1.5*best.limit
}

// lost reports whether so much of the best throughput is gone that it is worth
// a drain to see whose fault that is.
func (t *throughput) lost() bool { return t.now.value < 0.7*t.greatest().rate }

// average is an exponentially weighted mean that starts without a bias.
type average struct{ value, weight float64 }

// add takes a value that held for so many time constants.
func (a *average) add(value, constants float64) {
	share := 1 - math.Exp(-constants)
	a.weight += share * (1 - a.weight)
	a.value += share / a.weight * (value - a.value)
}
