package adaptive

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	shortest = 20 * time.Millisecond // a window
	longest  = 30 * time.Second      // a window, unless a call takes longer
	enough   = 16                    // calls that a window wants
	kept     = 512                   // latencies of a window, at most
	never    = time.Duration(math.MaxInt64)
)

// window collects what happened between two decisions about the limit. After
// a change of the limit it waits until the change can be seen: first until no
// more calls are in flight than may be, then for a while more.
type window struct {
	open      bool          // it collects; otherwise it settles
	ready     time.Duration // settling: when it opens; never while there are too many in flight
	settle    time.Duration // settling: how long after that
	start     time.Duration // collecting: since when
	look      time.Duration // collecting: not worth judging before
	peak      int           // most calls in flight
	before    int           // the same of the window before, when calls that end in this one were sent
	blocked   bool          // a caller found no permit
	throttled bool          // a call was refused for a quota
	calls     int           // successes and failures
	n         int           // successes
	sum       float64       // of their latencies, in seconds
	sample    []float64     // of these, kept at most
}

// close empties the window, to open again after settle.
func (w *window) close(settle time.Duration) {
	*w = window{ready: never, settle: settle, before: w.peak, sample: w.sample[:0]}
}

// reopen empties the window and goes on collecting.
func (w *window) reopen(now time.Duration, inFlight int) {
	before := w.peak
	if !w.open {
		before = max(before, w.before)
	}
	*w = window{open: true, start: now, look: now, peak: inFlight, before: before, throttled: w.throttled && !w.open, sample: w.sample[:0]}
}

// pass opens the window when it has settled.
func (w *window) pass(now time.Duration, inFlight, permits int) {
	if w.open {
		return
	}
	if w.ready == never {
		if inFlight > permits {
			return
		}
		w.ready = now + w.settle
	}
	if now >= w.ready {
		w.reopen(now, inFlight)
	}
}

// add counts a success. Of a large window a fair sample is kept (Vitter's
// algorithm R).
func (w *window) add(latency float64, random *rand.Rand) {
	if !w.open {
		return
	}
	w.calls++
	w.n++
	w.sum += latency
	if len(w.sample) < kept {
		w.sample = append(w.sample, latency)
	} else if i := random.IntN(w.n); i < kept {
		w.sample[i] = latency
	}
}

// summary is what a window says.
type summary struct {
	calls, n   int
	elapsed    float64 // seconds
	throughput float64 // successes per second
	mean       float64 // latency, in seconds
	median     float64 // latency, in seconds
	se         float64 // standard error of the median
	p95        float64 // latency, in seconds
	peak       int
	before     int
	blocked    bool
	throttled  bool
}

// summary sorts the sample: n log n of at most kept.
func (w *window) summary(now time.Duration) summary {
	s := summary{calls: w.calls, n: w.n, elapsed: seconds(now - w.start), peak: w.peak, before: w.before, blocked: w.blocked, throttled: w.throttled}
	if w.n == 0 {
		return s
	}
	s.throughput = float64(w.n) / s.elapsed
	s.mean = w.sum / float64(w.n)
	// The order of a sample is of no importance to the sampling.
	slices.Sort(w.sample)
	s.median, s.se = median(w.sample)
	s.p95 = w.sample[len(w.sample)*95/100]
	return s
}

// median is the median of a sorted sample and its standard error, without
// supposing any distribution: half the distance between the order statistics
// at n/2 ± √n/2.
func median(sorted []float64) (m, se float64) {
	n := len(sorted)
	m = (sorted[(n-1)/2] + sorted[n/2]) / 2
	at := func(i float64) float64 { return sorted[int(min(max(math.Round(i), 0), float64(n-1)))] }
	middle, half := float64(n-1)/2, math.Sqrt(float64(n))/2
	if n < 4 {
		return m, m / math.Sqrt(float64(n)) // too few to tell: as wide as if exponential
	}
	return m, (at(middle+half) - at(middle-half)) / 2
}
