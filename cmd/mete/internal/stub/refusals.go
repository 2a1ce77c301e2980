package stub

// Refusal is one answer of 429 and what arrived after it: by that a client can
// be judged, which is to stay away and to come back step by step.
type Refusal struct {
	// AtMS is when it was answered, in Unix milliseconds.
	AtMS float64 `json:"at_ms"`
	// QuietMS is how long after it the next request arrived; 0 if none has.
	// What arrives within 20 ms of the answer was under way and does not count.
	QuietMS float64 `json:"quiet_ms"`
	// Seconds are the arrivals in each of the three seconds that begin with
	// that request.
	Seconds [3]int64 `json:"seconds"`
}

const (
	underWay     = 20e6 // ns
	mostRefusals = 64
)

// refused notes when a 429 was answered, for the first few.
func (c *counts) refused(at int64) {
	if at > 0 && len(c.refusals) < mostRefusals {
		c.refusals = append(c.refusals, at)
	}
}

// listRefusals looks up what arrived after each refusal, as far as the record
// of arrivals goes back.
func (c *counts) listRefusals(wall int64) (list []Refusal) {
	for _, at := range c.refusals {
		r := Refusal{AtMS: millis(wall + at)}
		if i := c.arrivals.after(at + underWay); i < c.arrivals.n {
			next := c.arrivals.at(i)
			r.QuietMS = millis(next - at)
			for s := range r.Seconds {
				from := next + int64(s)*1e9
				r.Seconds[s] = int64(c.arrivals.after(from+1e9-1) - c.arrivals.after(from-1))
			}
		}
		list = append(list, r)
	}
	return list
}
