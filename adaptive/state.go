package adaptive

import "time"

// Reason is why a limit is what it is.
type Reason string

// The reasons.
const (
	Start  Reason = "start"  // nothing has changed it yet
	Growth Reason = "growth" // it bound, and the provider could do with more
	Queue  Reason = "queue"  // too many calls queue at the provider
	Guard  Reason = "guard"  // they seem to, but throughput is down too: not changed
	Drain  Reason = "drain"  // latency was measured at half the limit
	Cut    Reason = "cut"    // too many calls failed
	Vain   Reason = "vain"   // a cut changed nothing about the failures: taken back
	Rate   Reason = "rate"   // 429s taught a rate
)

// State is what a limiter knows, to be shown.
type State struct {
	Limit      float64       // before it is rounded down to permits
	Permits    int           // fewer while a drain lasts
	InFlight   int           // permits out when last told, less the calls that ended since
	Queue      float64       // estimate of the calls that queue at the provider, in the last window
	Target     float64       // how many should
	Baseline   time.Duration // median latency without a queue; 0 is not known yet
	Median     time.Duration // median latency in the last window
	Throughput float64       // successes per second in the last window
	Tolerance  float64       // share of failures that changes nothing
	Ceiling    float64       // most that failures leave the limit for now; 0 is none
	Rate       float64       // starts per second, as taught by 429s; 0 is none
	Draining   bool
	Reason     Reason // of the last change
}

// State returns what the limiter knows.
func (l *Limiter) State() State {
	s := State{
		Limit: l.limit, Permits: l.Limit(), InFlight: l.inFlight,
		Queue: l.queue, Target: setPoint(l.limit),
		Baseline: duration(l.baseline.value), Median: duration(l.last.median), Throughput: l.last.throughput,
		Tolerance: l.failure.tolerance, Rate: l.Rate(),
		Draining: l.drain.active, Reason: l.reason,
	}
	if l.failure.level > 0 {
		s.Ceiling = l.failure.top()
	}
	return s
}
