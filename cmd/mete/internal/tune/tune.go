// Package tune finds how many permits a provider can use, by experiment.
//
// As long as the provider has room, twice the permits bring twice the
// throughput and the same latency; beyond its knee they bring the same
// throughput and twice the latency. So permits are doubled until throughput
// stops growing. The knee then follows from Little's law: the calls that were
// in flight without queueing are the largest throughput times the latency of a
// provider that has nothing to queue (J. D. C. Little, 1961). One chunk there,
// and one at half of it, show whether that is so.
//
// A Search is plain data: it is told what was measured and says what to
// measure next.
package tune

import (
	"math"
	"time"
)

// Chunk is what was measured with a number of permits.
type Chunk struct {
	Permits int
	// Rows is how many rows were finished in Duration, and Failed how many of
	// them without success.
	Rows, Failed int64
	Duration     time.Duration
	// Semaphore and Limiter are the mean waits of a row for a permit and for a
	// limit.
	Semaphore, Limiter time.Duration
	// Latency is the mean time of a call, P50 and P95 its quantiles.
	Latency, P50, P95 time.Duration
	// Throttled is how many calls the provider pushed back.
	Throttled int64
}

// Throughput is the rows that were answered per second.
func (c Chunk) Throughput() float64 {
	if c.Duration <= 0 {
		return 0
	}
	return float64(c.Rows-c.Failed) / c.Duration.Seconds()
}

// limited reports whether the rows waited for a limit rather than for permits.
func (c Chunk) limited() bool { return c.Limiter > c.Semaphore && c.Limiter > c.Latency/20 }

// refused reports whether the provider pushed back more than now and then.
func (c Chunk) refused() bool { return c.Throttled*50 > c.Rows }

// Search is an experiment.
type Search struct {
	// Start is the number of permits to double first; 0 computes it from Rate
	// once the latency is known, or else is 16.
	Start int
	// Max is the largest number of permits to try; 0 is 512.
	Max int
	// Rate is how many calls the limits let start per second; 0 is no limit.
	Rate float64

	chunks []Chunk
	near   bool // the knee is computed; what is left is to look at it
}

const (
	first     = 4    // permits with which the latency without a queue is measured
	usual     = 16   // permits to start with where nothing can be computed
	mostTried = 512  // unless Max says otherwise
	grew      = 1.25 // by which throughput must rise with twice the permits
	headroom  = 2    // on Little's figure, as in package sizing
)

// Add tells what was measured.
func (s *Search) Add(c Chunk) { s.chunks = append(s.chunks, c) }

// Chunks are what was measured so far, in that order.
func (s *Search) Chunks() []Chunk { return s.chunks }

// Rows is how many rows to run with a number of permits: those that are in
// flight when it changes tell nothing, and some rounds of it are measured.
func Rows(permits int) (settle, measure int64) {
	return int64(permits), int64(max(6*permits, 60))
}

func (s *Search) most() int {
	if s.Max <= 0 {
		return mostTried
	}
	return s.Max
}

// Next is the number of permits to measure with; 0 when all is known.
func (s *Search) Next() int {
	n := len(s.chunks)
	if n == 0 {
		if s.Start > 0 {
			return min(max(s.Start/4, 1), first, s.most())
		}
		return min(first, s.most())
	}
	if s.near {
		return s.beside()
	}
	last := s.chunks[n-1]
	switch {
	case n == 1 && !last.refused():
		return s.fresh(s.start())
	case last.refused(), last.limited(), !s.rising():
		s.near = true
		return s.beside()
	}
	return s.fresh(2 * last.Permits)
}

// fresh is permits, or 0 if it was measured already or is too many.
func (s *Search) fresh(permits int) int {
	permits = min(permits, s.most())
	if permits < 1 {
		return 0
	}
	for _, c := range s.chunks {
		if c.Permits == permits {
			return 0
		}
	}
	return permits
}

// start is the number of permits after the first chunk.
func (s *Search) start() int {
	switch {
	case s.Start > 0:
		return s.Start
	case s.Rate > 0:
		return max(s.little(), 2*first)
	}
	return usual
}

// little is the computed figure: the calls that the rate keeps in flight, with
// headroom.
func (s *Search) little() int {
	return int(math.Ceil(min(s.Rate*s.quiet().Seconds()*headroom, 1<<20)))
}

// quiet is the latency without a queue: the least mean of all chunks. What
// disturbs a chunk only makes it slower.
func (s *Search) quiet() time.Duration {
	least := s.chunks[0].Latency
	for _, c := range s.chunks {
		if c.Latency > 0 && (least == 0 || c.Latency < least) {
			least = c.Latency
		}
	}
	return least
}

// rising reports whether the last chunk brought more than the one before it.
func (s *Search) rising() bool {
	n := len(s.chunks)
	a, b := s.chunks[n-2], s.chunks[n-1]
	want := 1 + (grew-1)*(float64(b.Permits)/float64(a.Permits)-1)
	return b.Throughput() >= want*a.Throughput()
}

// best is the chunk with the largest throughput.
func (s *Search) best() Chunk {
	var best Chunk
	for _, c := range s.chunks {
		if c.Throughput() > best.Throughput() {
			best = c
		}
	}
	return best
}

// beside is the computed knee, then half of it, as far as they were not
// measured or lie close to what was.
func (s *Search) beside() int {
	at := s.knee()
	if s.limited() {
		at = s.little()
	}
	for _, n := range []int{at, at / 2} {
		if n >= 1 && n <= s.most() && !s.closeTo(n) {
			return n
		}
	}
	return 0
}

// closeTo reports whether a chunk within an eighth of n was measured.
func (s *Search) closeTo(n int) bool {
	for _, c := range s.chunks {
		if math.Abs(float64(c.Permits-n)) <= float64(n)/8 {
			return true
		}
	}
	return false
}

// limited reports whether the limits, and not the provider, bound the best
// chunk.
func (s *Search) limited() bool {
	return s.best().limited() || s.Rate > 0 && s.best().Throughput() > 0.95*s.Rate
}

// knee is how many calls the provider works on at once.
func (s *Search) knee() int {
	return int(math.Round(s.best().Throughput() * s.quiet().Seconds()))
}
