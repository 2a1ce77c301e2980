package tune

import (
	"fmt"
	"math"
	"time"
)

// Verdict is what an experiment showed.
type Verdict struct {
	// Permits is the number to use; 0 if nothing was measured.
	Permits int
	// Knee is how many calls the provider works on at once; 0 if the limits,
	// the input or Max ended the search before it was reached.
	Knee int
	// Limited says that the limits were the bound.
	Limited bool
	// Evidence is why, in sentences.
	Evidence []string
}

// Verdict sums up what was measured so far.
func (s *Search) Verdict() Verdict {
	best := s.best()
	if best.Permits == 0 {
		return Verdict{Evidence: []string{"No row was answered: there is nothing to recommend."}}
	}
	var v Verdict
	say := func(format string, args ...any) { v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...)) }
	quiet := s.quiet()
	switch {
	case s.limited():
		v.Limited = true
		rate := best.Throughput()
		if s.Rate > 0 {
			rate = s.Rate
		}
		needed := rate * quiet.Seconds()
		v.Permits = max(int(math.Ceil(needed*headroom)), 1)
		say("The limits were reached: %s/s with %d permits, and rows waited for the limit, not for permits. More permits change nothing.", figure(best.Throughput()), best.Permits)
		say("%s/s x %s = %s in flight (Little), x %d headroom = %d.", figure(rate), span(quiet), figure(needed), headroom, v.Permits)
	case s.peaked():
		v.Knee = max(s.knee(), 1)
		v.Permits = v.Knee
		if a, b, ok := s.flat(); ok {
			say("From %d to %d permits throughput went from %s/s to %s/s, while the median latency went from %s to %s: the calls queued at the provider.",
				a.Permits, b.Permits, figure(a.Throughput()), figure(b.Throughput()), span(a.P50), span(b.P50))
		}
		say("%s/s at %s without a queue is %d calls that it works on at once (Little).", figure(best.Throughput()), span(quiet), v.Knee)
		if c, ok := s.at(v.Knee); ok {
			say("Measured with %d permits: %s/s, %.0f %% of the most, at a median of %s.", c.Permits, figure(c.Throughput()), 100*c.Throughput()/best.Throughput(), span(c.P50))
		}
	default:
		v.Permits = best.Permits
		say("Throughput was still rising at %d permits: the knee is not below it.", best.Permits)
	}
	for _, c := range s.chunks {
		if c.refused() {
			say("With %d permits the provider refused %d of %d calls: it has a limit that mete was not told of. Give it with --rate.", c.Permits, c.Throttled, c.Rows)
			break
		}
	}
	return v
}

// peaked reports whether more permits than those of the best chunk, or half as
// many, brought about as much.
func (s *Search) peaked() bool {
	_, _, ok := s.flat()
	return ok
}

// flat finds two chunks between which permits grew much more than throughput.
func (s *Search) flat() (a, b Chunk, ok bool) {
	for _, x := range s.chunks {
		for _, y := range s.chunks {
			if 2*y.Permits < 3*x.Permits || x.Throughput() == 0 {
				continue
			}
			want := 1 + (grew-1)*(float64(y.Permits)/float64(x.Permits)-1)
			if y.Throughput() < want*x.Throughput() && (!ok || x.Permits > a.Permits) {
				a, b, ok = x, y, true
			}
		}
	}
	return a, b, ok
}

// at finds the chunk closest to a number of permits, within an eighth of it.
func (s *Search) at(permits int) (found Chunk, ok bool) {
	for _, c := range s.chunks {
		d := math.Abs(float64(c.Permits - permits))
		if d <= float64(permits)/8 && (!ok || d < math.Abs(float64(found.Permits-permits))) {
			found, ok = c, true
		}
	}
	return found, ok
}

func figure(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func span(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
