package quota

import (
	"net/http"
	"time"
)

// MaxBody is how much of a body Parse looks at, in bytes.
const MaxBody = 64 << 10

// Response is what there is to learn from.
type Response struct {
	// Provider names the dialect, as in "github". An unknown or empty name
	// means the common rules, which most providers need nothing beyond.
	Provider string
	Status   int
	Header   http.Header
	// Body is the start of the body, decoded from its content encoding. Only
	// the first MaxBody bytes are read. It may be nil: then codes and delays
	// that only the body has are missed.
	Body []byte
	// Now is the client's clock when the header arrived; the zero time means
	// time.Now.
	Now time.Time
}

// Reading is what a response says.
type Reading struct {
	// Throttled says that the server pushed back because of load or quota,
	// whatever the status: some do so with 200, 400 or 403.
	Throttled bool
	// Terminal says that waiting a short time cannot help, as when the money
	// is spent or the server forbids a retry. Do not retry.
	Terminal bool
	// Spent is the Terminal that concerns everybody behind the same credential:
	// the quota of the day or the money is used up. Without it a Terminal is
	// about the one request.
	Spent bool
	// RetryAfter is the least time to wait, in whole milliseconds within
	// [0, MaxDelay]. It is valid only if HasRetryAfter is set: a delay of 0
	// differs from none, which calls for an exponential back-off.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Quotas are sorted by name. Independent limits are kept apart: a gateway
	// and the application behind it each have their own, and the tighter one
	// counts.
	Quotas []Quota
}

// Quota is one limit of a provider as a response shows it.
type Quota struct {
	// Name is the provider's name for it, else the name of its header family.
	Name string
	// Unit is what is counted: "requests", "tokens" or "points".
	Unit string
	// Limit is how many units a window holds, and Remaining how many were
	// left. Each is valid only if its Has field is set.
	Limit, Remaining       int64
	HasLimit, HasRemaining bool
	// Window is the length of the window; 0 means unknown.
	Window time.Duration
	// Reset is when the quota is full again, on the client's clock, at most
	// MaxDelay ahead; the zero time means unknown.
	Reset time.Time
	// Bucket says that the quota refills continuously, so that Remaining can
	// rise before Reset.
	Bucket bool
}

// Parse reads a response. It never fails: what it cannot read, it ignores.
// It takes some microseconds for the header. The body of a success is decoded
// only if it is Suspicious, that of a failure if it is JSON: at worst some
// milliseconds for MaxBody bytes.
func Parse(r Response) Reading {
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	now := r.Now.Round(0).UTC()
	f := newFields(r.Header)
	p := findProfile(r.Provider, f)
	said := readBody(r, p)
	said.throttled = said.throttled || f.isThrottleType()

	var quotas []Quota
	if f.age() == 0 { // what a cache replays is out of date
		s := newSheet(f, p, now)
		s.readFamilies()
		s.readVendors()
		s.readStructured()
		s.readCost(said.cost)
		quotas = s.quotas()
	}

	header, hasHeader := f.retryAfter(now)
	explicit, hasExplicit := max(header, said.delay), hasHeader || said.hasDelay
	reading := Reading{
		Throttled: isThrottled(r.Status, hasExplicit, said.throttled, quotas),
		Terminal:  said.terminal || f.forbidsRetry(),
		Spent:     said.terminal,
		Quotas:    quotas,
	}
	switch {
	case !reading.Throttled:
		// A 2xx uses Retry-After for other things, such as when to poll.
		if r.Status >= 300 {
			reading.RetryAfter, reading.HasRetryAfter = header, hasHeader
		}
	case hasExplicit:
		reading.RetryAfter, reading.HasRetryAfter = explicit, true
	default:
		reading.RetryAfter, reading.HasRetryAfter = inferDelay(r.Body, quotas, said, now)
	}
	return reading
}

// isThrottled tells a refusal because of load or quota from other failures.
func isThrottled(status int, explicit, code bool, quotas []Quota) bool {
	switch status {
	case 429, 420, 509, 529:
		return true
	case 503, 403:
		// Alone they are a transient fault and a lack of permission.
		for _, q := range quotas {
			if q.exhausted() {
				return true
			}
		}
		return explicit || code
	case 413, 418:
		return explicit || code
	}
	return code
}

// inferDelay finds the delay of a throttled response that does not state one.
func inferDelay(body []byte, quotas []Quota, said statement, now time.Time) (time.Duration, bool) {
	if d, ok := textDelay(body); ok {
		return d, true
	}
	var exhausted, silent time.Time
	spent := false
	for _, q := range quotas {
		switch {
		case q.exhausted():
			spent = true
			exhausted = later(exhausted, q.Reset)
		case !q.HasRemaining:
			silent = later(silent, q.Reset)
		}
	}
	if !spent {
		// If every quota shows room, another limit fired that is not shown.
		exhausted = silent
	}
	if !exhausted.IsZero() {
		return clampDelay(exhausted.Sub(now)), true
	}
	return said.fallback, said.fallback > 0
}

func (q Quota) exhausted() bool { return q.HasRemaining && q.Remaining == 0 }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
