package simulate

import "time"

// aimd is the rule of Netflix concurrency-limits' AIMDLimit: one more while at
// least half is used, a tenth less on a failure or a call of more than 5 s.
type aimd struct{ l int }

func newAIMD(s Setting) rule { return &aimd{s.initial()} }

func (a *aimd) limit() int { return a.l }

func (a *aimd) sample(s sample) {
	switch {
	case s.dropped || s.latency > 5*time.Second:
		a.l = max(minLimit, int(float64(a.l)*0.9))
	case 2*s.inFlight >= a.l:
		a.l = min(maxLimit, a.l+1)
	}
}
