package results

import (
	"time"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

// latencies is an HDR histogram (Gil Tene) from a microsecond to a day with an
// error below one per cent. It keeps its bars finer than progress.Latency does,
// for a histogram that fits the data.
type latencies struct {
	hist *hdrhistogram.Histogram
	sum  float64 // seconds
	max  time.Duration
}

const longest = 24 * time.Hour

func (l *latencies) add(d time.Duration) {
	if l.hist == nil {
		l.hist = hdrhistogram.New(1, longest.Microseconds(), 2)
	}
	// The only error is a value out of range, and this one is not.
	_ = l.hist.RecordValue(max(min(d, longest).Microseconds(), 1))
	l.sum += d.Seconds()
	l.max = max(l.max, d)
}

func (l *latencies) quantiles() progress.Quantiles {
	if l.hist == nil {
		return progress.Quantiles{}
	}
	n := l.hist.TotalCount()
	at := func(percentile float64) time.Duration {
		return min(time.Duration(l.hist.ValueAtPercentile(percentile))*time.Microsecond, l.max)
	}
	return progress.Quantiles{
		Count: n, Mean: time.Duration(l.sum / float64(n) * float64(time.Second)), Max: l.max,
		P50: at(50), P90: at(90), P95: at(95), P99: at(99),
	}
}

// maxBars is how many bars the histogram has at most.
const maxBars = 12

// scales are bounds within a decade, in hundredths, from fine to coarse.
var scales = [][]int64{
	{100, 110, 120, 130, 140, 150, 170, 200, 220, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900},
	{100, 120, 150, 200, 250, 300, 400, 500, 600, 800},
	{100, 150, 200, 300, 500, 700},
	{100, 200, 500},
	{100, 300},
	{100},
}

// buckets divides the recorded durations by round bounds, the finest that need
// no more than maxBars. Durations within one per cent of a bound may lie on
// either side of it.
func (l *latencies) buckets() []progress.Bucket {
	if l.hist == nil {
		return nil
	}
	var bars []hdrhistogram.Bar
	for _, b := range l.hist.Distribution() {
		if b.Count > 0 {
			bars = append(bars, b)
		}
	}
	var out []progress.Bucket
	for _, scale := range scales {
		if out = divide(bars, scale); len(out) <= maxBars {
			break
		}
	}
	return out
}

// divide puts the bars between the bounds of one scale; buckets without a
// duration stand only between others.
func divide(bars []hdrhistogram.Bar, scale []int64) []progress.Bucket {
	var out []progress.Bucket
	decade, i := int64(1), 0 // µs
	for _, b := range bars {
		for len(out) == 0 || b.From > out[len(out)-1].AtMost.Microseconds() {
			bound := decade * scale[i] / 100
			if i++; i == len(scale) {
				decade, i = decade*10, 0
			}
			if len(out) > 0 && bound > out[len(out)-1].AtMost.Microseconds() || len(out) == 0 && bound >= b.From {
				out = append(out, progress.Bucket{AtMost: time.Duration(bound) * time.Microsecond})
			}
		}
		out[len(out)-1].Count += b.Count
	}
	return out
}
