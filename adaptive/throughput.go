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
	smooth float64       // successes per second
	best   [10]float64   // the greatest of each tenth of the time that counts
	slot   int64         // number of the newest tenth
	width  time.Duration // of a tenth
}

// add takes a window's throughput; r is the mean latency in seconds.
func (t *throughput) add(now time.Duration, s summary, r float64) {
	if t.smooth == 0 {
		t.smooth = s.throughput
	} else {
		t.smooth += (1 - math.Exp(-s.elapsed/max(0.5, 8*r))) * (s.throughput - t.smooth)
	}
	width := max(10*time.Second, duration(100*r)) / time.Duration(len(t.best))
	if t.width == 0 || width > 2*t.width || 2*width < t.width {
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
		t.best[(t.slot+1)%int64(len(t.best))] = 0
	}
	i := n % int64(len(t.best))
	t.best[i] = max(t.best[i], t.smooth)
}

func (t *throughput) greatest() float64 {
	best := 0.0
	for _, v := range t.best {
		best = max(best, v)
	}
	return best
}

// down reports whether throughput is well below its best.
func (t *throughput) down() bool { return t.smooth < guard*t.greatest() }
