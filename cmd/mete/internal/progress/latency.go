package progress

import (
	"sync"
	"time"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"
)

// Latency records durations: of calls, or of waits. The zero value is ready.
//
// It is an HDR histogram (Gil Tene) from a microsecond to a day with an error
// below one per cent; longer durations count as a day, except in Mean and Max,
// which are exact. It takes 30 KB from the first Record on and is safe for
// concurrent use; Record costs a mutex, about 50 ns in all, and does not allocate.
type Latency struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
	sum  float64 // seconds
	max  time.Duration
}

const (
	longest = 24 * time.Hour
	figures = 2
)

// Record adds one duration. A negative one counts as 0.
func (l *Latency) Record(d time.Duration) {
	d = max(d, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hist == nil {
		l.hist = hdrhistogram.New(1, longest.Microseconds(), figures)
	}
	// The only error is a value out of range, and this one is not.
	_ = l.hist.RecordValue(min(d, longest).Microseconds())
	l.sum += d.Seconds()
	l.max = max(l.max, d)
}

// Quantiles sum up recorded durations. All are 0 if Count is.
type Quantiles struct {
	Count int64
	Mean  time.Duration
	P50   time.Duration
	P90   time.Duration
	P95   time.Duration
	P99   time.Duration
	Max   time.Duration
}

// Quantiles returns what has been recorded so far. It takes some microseconds.
func (l *Latency) Quantiles() Quantiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hist == nil {
		return Quantiles{}
	}
	n := l.hist.TotalCount()
	at := func(percentile float64) time.Duration {
		return min(time.Duration(l.hist.ValueAtPercentile(percentile))*time.Microsecond, l.max)
	}
	return Quantiles{
		Count: n,
		Mean:  time.Duration(l.sum / float64(n) * float64(time.Second)),
		P50:   at(50),
		P90:   at(90),
		P95:   at(95),
		P99:   at(99),
		Max:   l.max,
	}
}

// Bucket counts the durations above the bound of the bucket before and at most
// AtMost, which is 0 for the last bucket: it has no bound.
type Bucket struct {
	AtMost time.Duration
	Count  int64
}

// bounds reach from a millisecond to an hour, for waits of minutes are normal
// under a quota (cortexproject/cortex#5029: everything in the last bucket).
func bounds() []time.Duration {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	return []time.Duration{
		ms, 3 * ms, 10 * ms, 30 * ms, 100 * ms, 300 * ms, s, 3 * s, 10 * s, 30 * s,
		m, 2 * m, 5 * m, 10 * m, 30 * m, 60 * m,
	}
}

// Buckets returns the recorded durations in fixed buckets from 1 ms to 1 h and
// one for what is longer. Durations within one per cent of a bound may lie on
// either side of it.
func (l *Latency) Buckets() []Bucket {
	var bs []Bucket
	for _, b := range bounds() {
		bs = append(bs, Bucket{AtMost: b})
	}
	bs = append(bs, Bucket{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hist == nil {
		return bs
	}
	i := 0
	for _, bar := range l.hist.Distribution() {
		for i < len(bs)-1 && bar.From > bs[i].AtMost.Microseconds() {
			i++
		}
		bs[i].Count += bar.Count
	}
	return bs
}
