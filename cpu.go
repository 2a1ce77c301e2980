package mete

import (
	"math"
	"runtime/metrics"
	"time"
)

// processor is what this process has had of the processors, and has waited for.
type processor struct {
	cpu   time.Duration // 0 where it is not known
	ready time.Duration // that goroutines could run and did not, all together
}

// tracked is of how many waits for a processor the runtime times one: see
// gTrackingPeriod in runtime/runtime2.go.
const tracked = 8

// readProcessor costs some microseconds, most of them in the kernel.
func readProcessor() processor {
	p := processor{cpu: processorTime()}
	wait := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(wait)
	if wait[0].Value.Kind() != metrics.KindFloat64Histogram {
		return p
	}
	h := wait[0].Value.Float64Histogram()
	sum := 0.0
	for i, n := range h.Counts {
		low, high := max(h.Buckets[i], 0), h.Buckets[i+1]
		if math.IsInf(high, 1) {
			high = low
		}
		sum += float64(n) * (low + high) / 2
	}
	p.ready = time.Duration(tracked * sum * float64(time.Second))
	return p
}
