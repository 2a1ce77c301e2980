// Package sizing computes how many calls to keep in flight.
//
// By Little's law (J. D. C. Little, "A Proof for the Queuing Formula L = λW",
// 1961) a stream of λ calls per second that take W seconds each has λW of them
// in flight on average: 50/s at 200 ms are 10. Latency varies, so the figure is
// multiplied by some headroom. A connection pool, memory and processors can each
// allow less; the least figure decides.
//
// The result is a computed start. Measure, and correct it.
package sizing

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Input is what is known. A zero field is not known and bounds nothing; either
// the rate with the latency, or one of the other bounds, must be known.
type Input struct {
	// Rate is how many calls may start Per (a second if Per is 0).
	Rate float64
	Per  time.Duration
	// Latency is the mean time that a call is in flight, from its start to
	// the end of its body.
	Latency time.Duration
	// Headroom multiplies Little's figure, so that slower calls than the mean
	// do not make the in-flight limit the bound. 0 means 2; below 1 is an error.
	Headroom float64
	// Pool is how many connections the client may open.
	Pool int
	// Memory is what all responses in flight may take, ResponseSize what one
	// of them takes, in bytes. They are known together or not at all.
	Memory, ResponseSize int64
	// CPU is how many processors the work of a call keeps busy one each: for
	// calls that compute, not for those that wait.
	CPU int
	// Requests is how many calls there are to make, for Plan.Duration.
	Requests int64
}

// The bounds of a plan, as in Plan.DecidedBy.
const (
	ByRate   = "rate"
	ByPool   = "pool"
	ByMemory = "memory"
	ByCPU    = "cpu"
)

// By holds what each bound allows, 0 where it is not known.
type By struct {
	Rate, Pool, Memory, CPU int
}

// Plan is the answer.
type Plan struct {
	// Permits is how many calls to allow in flight: the least of By.
	Permits int
	By      By
	// DecidedBy is the bound that is the least one.
	DecidedBy string
	// Needed is Little's figure without headroom: the calls in flight that
	// keep up with the rate. 0 if it is not known.
	Needed float64
	// PerSecond is the rate that the plan reaches: the given one, or what the
	// permits allow if that is less. 0 if it is not known.
	PerSecond float64
	// Duration is the time that Requests calls take at that rate, 0 if it is
	// not known.
	Duration time.Duration
	// Comment is the derivation in one line, to stand beside the number.
	Comment string
	// Warnings are sentences about what will not work as hoped.
	Warnings []string
}

// maxPermits keeps every figure a number that can be written down.
const maxPermits = math.MaxInt32

const defaultHeadroom = 2

// For computes the plan for in. The error says which field is wrong or missing.
func For(in Input) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	if in.Per == 0 {
		in.Per = time.Second
	}
	if in.Headroom == 0 {
		in.Headroom = defaultHeadroom
	}
	perSecond := in.Rate / in.Per.Seconds()

	var p Plan
	if in.Rate > 0 && in.Latency > 0 {
		// Multiplied before it is divided: 50 * 200 / 1000 is 10, not a bit more.
		p.Needed = in.Rate * float64(in.Latency) / float64(in.Per)
		p.By.Rate = ceil(p.Needed * in.Headroom)
	}
	p.By.Pool = min(in.Pool, maxPermits)
	if in.Memory > 0 {
		p.By.Memory = int(min(in.Memory/in.ResponseSize, maxPermits))
	}
	p.By.CPU = min(in.CPU, maxPermits)
	p.decide(in)

	p.PerSecond = perSecond
	if in.Latency > 0 {
		if most := float64(p.Permits) / in.Latency.Seconds(); in.Rate == 0 || most < perSecond {
			p.PerSecond = most
		}
	}
	p.Duration = duration(in.Requests, p.PerSecond, in.Latency)
	p.Comment = p.comment(in)
	p.Warnings = p.warnings(in, perSecond)
	return p, nil
}

func (in Input) check() error {
	switch {
	case bad(in.Rate):
		return fmt.Errorf("the rate must be a number of calls, not %v", in.Rate)
	case in.Per < 0:
		return fmt.Errorf("the period of the rate must be above 0, not %v", in.Per)
	case in.Latency < 0:
		return fmt.Errorf("the latency must be above 0, not %v", in.Latency)
	case bad(in.Headroom) || in.Headroom > 0 && in.Headroom < 1:
		return fmt.Errorf("the headroom must be at least 1, not %v: below, the rate cannot be reached", in.Headroom)
	case in.Pool < 0:
		return fmt.Errorf("the pool must be at least 1, not %d", in.Pool)
	case in.CPU < 0:
		return fmt.Errorf("the number of processors must be at least 1, not %d", in.CPU)
	case in.Memory < 0 || in.ResponseSize < 0:
		return errors.New("memory and response size must be above 0")
	case in.Memory > 0 && in.ResponseSize == 0:
		return errors.New("memory bounds the calls in flight only with the response size: give both")
	case in.ResponseSize > 0 && in.Memory == 0:
		return errors.New("the response size bounds the calls in flight only with the memory: give both")
	case in.Memory > 0 && in.ResponseSize > in.Memory:
		return fmt.Errorf("one response of %s does not fit in memory of %s", Bytes(in.ResponseSize), Bytes(in.Memory))
	case in.Requests < 0:
		return fmt.Errorf("the number of requests must not be negative: %d", in.Requests)
	case in.Rate > 0 && in.Latency == 0:
		return errors.New("the rate needs the latency: calls in flight are rate x latency")
	case in.Pool == 0 && in.CPU == 0 && in.Memory == 0 && in.Rate == 0:
		return errors.New("nothing bounds the calls in flight: give the rate and the latency")
	}
	return nil
}

func bad(f float64) bool { return f < 0 || math.IsNaN(f) || math.IsInf(f, 0) }

// ceil rounds up, but not because of the last bits of a float.
func ceil(f float64) int {
	if f >= maxPermits {
		return maxPermits
	}
	return max(1, int(math.Ceil(f*(1-1e-12))))
}

// decide takes the least bound, the first of equals.
func (p *Plan) decide(in Input) {
	for _, b := range []struct {
		by    string
		n     int
		known bool
	}{
		{ByRate, p.By.Rate, in.Rate > 0},
		{ByPool, p.By.Pool, in.Pool > 0},
		{ByMemory, p.By.Memory, in.Memory > 0},
		{ByCPU, p.By.CPU, in.CPU > 0},
	} {
		if b.known && (p.DecidedBy == "" || b.n < p.Permits) {
			p.Permits, p.DecidedBy = b.n, b.by
		}
	}
}

// duration is the time of n calls: the starts, one by one, and the last call.
func duration(n int64, perSecond float64, latency time.Duration) time.Duration {
	if n == 0 || perSecond == 0 {
		return 0
	}
	d := float64(n-1)/perSecond*float64(time.Second) + float64(latency)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(d))
}

func (p Plan) comment(in Input) string {
	var parts []string
	if p.By.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%s x %s = %s in flight (Little), x %s headroom = %d",
			rate(in), in.Latency, figure(p.Needed), figure(in.Headroom), p.By.Rate))
	}
	if in.Pool > 0 {
		parts = append(parts, fmt.Sprintf("pool %d", p.By.Pool))
	}
	if in.Memory > 0 {
		parts = append(parts, fmt.Sprintf("memory %s / %s = %d", Bytes(in.Memory), Bytes(in.ResponseSize), p.By.Memory))
	}
	if in.CPU > 0 {
		parts = append(parts, fmt.Sprintf("cpu %d", p.By.CPU))
	}
	text := strings.Join(parts, "; ")
	if len(parts) > 1 {
		text += fmt.Sprintf("; the least is %d (%s)", p.Permits, p.DecidedBy)
	}
	return text
}

func (p Plan) warnings(in Input, perSecond float64) (w []string) {
	if in.Pool > 0 && p.By.Rate > in.Pool {
		w = append(w, fmt.Sprintf("the rate asks for %d permits, the pool has %d connections: raise the pool to %d, or it is a second limit that nobody sees",
			p.By.Rate, in.Pool, p.By.Rate))
	}
	if p.Needed > 0 && float64(p.Permits) < p.Needed*(1-1e-12) {
		w = append(w, fmt.Sprintf("%d permits (%s) carry %s/s of the %s/s allowed: %d are needed for all of it",
			p.Permits, p.DecidedBy, figure(p.PerSecond), figure(perSecond), ceil(p.Needed)))
	} else if p.Needed > 0 && p.DecidedBy != ByRate && float64(p.Permits) < p.Needed*1.2 {
		w = append(w, fmt.Sprintf("%d permits (%s) leave hardly any headroom over the %s in flight that the rate needs: calls slower than %s will cost rate",
			p.Permits, p.DecidedBy, figure(p.Needed), in.Latency))
	}
	if in.Requests > 0 && in.Requests < 5 {
		w = append(w, "fewer than 5 calls: no limiter is needed")
	}
	return w
}

// rate is the rate as one writes it: 50/s, 5/15s.
func rate(in Input) string {
	per := in.Per.String()
	switch in.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	case 24 * time.Hour:
		per = "d"
	}
	return figure(in.Rate) + "/" + per
}

// figure writes a number in at most three digits after the point, or as it is
// when it is smaller than that.
func figure(f float64) string {
	if f != 0 && f < 0.001 {
		return fmt.Sprintf("%.2g", f)
	}
	text := fmt.Sprintf("%.3f", f)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// Bytes writes a size in the largest binary unit it reaches, to two places:
// 512MiB, 1.5GiB, 100B.
func Bytes(n int64) string {
	const units = "KMGTPE"
	f, unit := float64(n), "B"
	for i := 0; f >= 1024 && i < len(units); i++ {
		f, unit = f/1024, units[i:i+1]+"iB"
	}
	return figure(math.Round(f*100)/100) + unit
}
