package stub

import (
	"fmt"
	"time"
)

// Config says how the fake provider behaves. The zero value answers every
// request with 200 at once on a free port of 127.0.0.1.
type Config struct {
	// Listen is the address; empty means 127.0.0.1:0, a free port.
	Listen string
	// Limits are the quotas. A request is charged to all of them or, when one
	// has no room, refused with 429 and charged to none.
	Limits []Limit
	// Tokens are quotas in tokens, always counted in sliding windows. With any,
	// answers tell their Usage.
	Tokens []Limit
	// Window is how the limits are counted.
	Window Window
	// Burst is the capacity of each Bucket; 0 means the limit's own number.
	Burst int64
	// Measure are further window lengths that the audit reports.
	Measure []time.Duration
	// Concurrency is how many accepted requests may be in flight; one more is
	// refused with ConcurrencyStatus (0 means 429). 0 means no bound.
	Concurrency       int
	ConcurrencyStatus int
	// Latency is how long an accepted request takes. Beyond Knee requests in
	// flight it grows in proportion: twice the knee, twice the latency.
	Latency Latency
	Knee    int
	// Fail, Reset and SoftErrors are shares of the accepted requests: answered
	// with an error status, cut off by a connection reset instead of an answer
	// (also on kept-alive connections, where clients replay by themselves), or
	// answered 200 with an error in the body. Together at most 1.
	Fail       []Fail
	Reset      float64
	SoftErrors float64
	// Headers is the dialect of the quota headers, RetryAfter the form of that
	// header on refusals.
	Headers    Headers
	RetryAfter RetryAfter
	// BodySize is the least size of a 200's body in bytes.
	BodySize int
	// Stream, when it has events, makes each 200 a server-sent event stream.
	Stream Stream
	// TLS serves with a certificate made at the start, HTTP/1.1 only unless
	// HTTP2 is set. Handshake delays each new connection: before the TLS
	// handshake ends or, without TLS, before its first request is handled.
	TLS, HTTP2 bool
	Handshake  time.Duration
	// Seed makes the faults and latencies reproducible.
	Seed uint64
}

// Limit is a quota of N requests per period.
type Limit struct {
	N   int64
	Per time.Duration
}

// String returns the limit as it is written in flags: "50/s", "5/15s".
func (l Limit) String() string {
	for _, u := range units {
		if u.d == l.Per {
			return fmt.Sprintf("%d/%s", l.N, u.name)
		}
	}
	return fmt.Sprintf("%d/%s", l.N, l.Per)
}

// Window is how a limit is counted.
type Window string

const (
	Sliding Window = "sliding" // at most N in any window; the default
	Fixed   Window = "fixed"   // at most N per period aligned to the clock, so up to 2N around an edge
	Bucket  Window = "bucket"  // a token bucket that starts full
)

// Headers is a dialect of quota headers.
type Headers string

const (
	NoHeaders Headers = "none" // the default
	IETF      Headers = "ietf" // RateLimit and RateLimit-Policy, as in draft-ietf-httpapi-ratelimit-headers-10
	OpenAI    Headers = "openai"
	Anthropic Headers = "anthropic"
	GitHub    Headers = "github"
)

// RetryAfter is the form of the Retry-After header.
type RetryAfter string

const (
	Seconds      RetryAfter = "seconds" // the default
	Date         RetryAfter = "date"
	NoRetryAfter RetryAfter = "none"
)

// Latency is a range; each request takes a time drawn evenly from it.
type Latency struct{ Min, Max time.Duration }

// Fail is a share of the requests, 0 to 1, that is answered with Status.
type Fail struct {
	Status int
	Share  float64
}

// Stream is a number of server-sent events and the time before each.
type Stream struct {
	Events int
	Gap    time.Duration
}

// Check reports the first mistake in the configuration, by the name of its
// flag, or nil.
func (c Config) Check() error {
	switch c.Window {
	case "", Sliding, Fixed, Bucket:
	default:
		return fmt.Errorf("--window %s: use sliding, fixed or bucket", c.Window)
	}
	switch c.Headers {
	case "", NoHeaders, IETF, OpenAI, Anthropic, GitHub:
	default:
		return fmt.Errorf("--headers %s: use none, ietf, openai, anthropic or github", c.Headers)
	}
	switch c.RetryAfter {
	case "", Seconds, Date, NoRetryAfter:
	default:
		return fmt.Errorf("--retry-after %s: use seconds, date or none", c.RetryAfter)
	}
	for _, l := range c.Limits {
		if l.N < 0 || l.Per <= 0 {
			return fmt.Errorf("--limit %v: needs a number of at least 0 and a period above 0, as in 50/s", l)
		}
	}
	for _, l := range c.Tokens {
		if l.N < 0 || l.Per <= 0 {
			return fmt.Errorf("--limit tokens=%v: needs a number of at least 0 and a period above 0, as in 90000/m", l)
		}
	}
	for _, d := range c.Measure {
		if d <= 0 {
			return fmt.Errorf("--measure %v: must be above 0", d)
		}
	}
	switch {
	case c.Burst < 0:
		return fmt.Errorf("--burst %d: must not be negative", c.Burst)
	case c.Burst > 0 && c.Window != Bucket:
		return fmt.Errorf("--burst %d: only a bucket has a burst; add --window bucket", c.Burst)
	case c.Concurrency < 0:
		return fmt.Errorf("--concurrency %d: must not be negative", c.Concurrency)
	case c.ConcurrencyStatus != 0 && !isStatus(c.ConcurrencyStatus):
		return fmt.Errorf("--concurrency-status %d: use a status from 200 to 599, such as 429 or 503", c.ConcurrencyStatus)
	case c.Knee < 0:
		return fmt.Errorf("--knee %d: must not be negative", c.Knee)
	case c.Knee > 0 && c.Latency.Max == 0:
		return fmt.Errorf("--knee %d: there is no latency that could grow; add --latency 80ms", c.Knee)
	case c.Latency.Min < 0 || c.Latency.Max < c.Latency.Min:
		return fmt.Errorf("--latency %v..%v: write the smaller first, as in 80ms..200ms", c.Latency.Min, c.Latency.Max)
	case c.BodySize < 0:
		return fmt.Errorf("--body-size %d: must not be negative", c.BodySize)
	case c.Stream.Events < 0 || c.Stream.Gap < 0:
		return fmt.Errorf("--stream %dx%v: must not be negative", c.Stream.Events, c.Stream.Gap)
	case c.Handshake < 0:
		return fmt.Errorf("--handshake %v: must not be negative", c.Handshake)
	case c.HTTP2 && !c.TLS:
		return fmt.Errorf("--http2 needs --tls")
	}
	sum := c.Reset + c.SoftErrors
	for _, f := range c.Fail {
		if !isStatus(f.Status) {
			return fmt.Errorf("--fail %d: use a status from 200 to 599", f.Status)
		}
		if f.Share < 0 {
			return fmt.Errorf("--fail %d: the share must not be negative", f.Status)
		}
		sum += f.Share
	}
	if c.Reset < 0 || c.SoftErrors < 0 {
		return fmt.Errorf("--reset and --soft-errors must not be negative")
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("--fail, --reset and --soft-errors add up to %.4g%%: keep them within 100%%", 100*sum)
	}
	return nil
}

func isStatus(code int) bool { return code >= 200 && code <= 599 }
