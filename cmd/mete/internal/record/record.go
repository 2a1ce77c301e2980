// Package record is the line that mete writes for every row it has finished.
//
// A record is one JSON object on one physical line. The line is also the
// journal entry that marks the row as done, so three things hold for whatever
// a provider answers: the line holds exactly one line feed (its last byte), it
// is valid UTF-8 and valid JSON, and the body's bytes can be had back from it
// unchanged.
//
// # Bodies
//
// body_encoding says how to read body:
//
//   - "json": an object or array, the very bytes that were received. Large
//     integers, the order of keys and escapes are as the provider sent them.
//   - "json-folded": the same, but the text had line breaks. White space
//     outside strings is coded so that it fits on one line: a space stands for
//     itself, tab-space for a line feed, tab-tab-space for a tab and
//     tab-tab-tab for a carriage return. A JSON reader need not care.
//   - "text": a string that holds any other valid UTF-8.
//   - "base64": a string that holds any other bytes.
//   - "file": body is null and body_file names a file relative to the folder
//     of the result file.
//   - null: there is no body here; body_bytes still tells its size.
//
// A lone number, true or "string" is "text" too: whether a plain-text answer
// happens to look like JSON must not decide the type of the column.
package record

import "time"

// Version is the schema version, written into every line as "v".
const Version = 1

// Record is the outcome of one row.
//
// Durations are written as milliseconds with up to three decimals, times in UTC
// to the millisecond.
type Record struct {
	ID        string // the row's own id, or one derived from its request
	NumericID bool   // the input wrote the id as an integer, so the record does too

	Key  uint64 // hash of the row key, see Sum
	Hash uint64 // hash of the rendered request; tells a changed row from a done one

	OK   bool
	Line int64  // physical line of the row in its input, from 1
	File string // name of the input; empty if there is only one

	Status   int // 0 if no response came
	Provider string
	Method   string
	URL      string // masked by the caller, see MaskURL
	Headers  []Header

	// Body is the response body. nil writes null. BodyBytes is its full size,
	// which is larger if the body was cut or lies in a file; 0 stands for
	// len(Body). Decode sets Encoding, AppendJSON chooses it.
	Body      []byte
	Encoding  Encoding
	BodyBytes int64
	BodyFile  string // relative to the folder of the result file
	Truncated bool

	Value []byte // JSON that was picked out of the body; nil writes nothing
	// DupOf is the id of the row whose request this row shared; empty writes
	// nothing.
	DupOf        string
	NumericDupOf bool // as NumericID
	// Fallback counts the providers that did not answer before Provider did; 0
	// writes nothing.
	Fallback int
	// Cache is "hit" if the answer is a stored one, "miss" if it was sent for;
	// empty writes nothing.
	Cache string

	Bound   string // what the row waited for longest
	Waits   Waits
	Latency time.Duration // connection to last byte of the last attempt
	TTFB    time.Duration
	Total   time.Duration // ready to finished

	Attempts int
	Tries    []Try
	Costs    []Cost
	Error    *Error // nil if OK

	At   time.Time // when the row was ready
	End  time.Time
	Run  string
	Meta []byte // any JSON, echoed; what is not JSON is written as a string
}

// Header is one response header. Names are written in lower case.
type Header struct {
	Name   string
	Values []string
}

// Waits tell where the time of a row went. They exclude each other, save Queue,
// which is the sum of Limiter, Pause, Semaphore, Breaker and Store.
type Waits struct {
	Queue, Limiter, Pause, Semaphore, Breaker, Store, Backoff, Conn time.Duration
}

// Try is one attempt.
type Try struct {
	N          int
	Provider   string
	At         time.Time
	Status     int
	Limiter    time.Duration
	Semaphore  time.Duration
	Pause      time.Duration
	Conn       time.Duration
	Took       time.Duration
	RetryAfter time.Duration
	Error      Kind
}

// Cost is what a row cost in one unit: the estimate it was admitted with and
// what it turned out to be.
type Cost struct {
	Unit           string
	Estimate, True float64
}

// Error says why a row failed.
type Error struct {
	Kind      Kind
	Phase     string
	Message   string
	Retryable bool
}

// Kind is the kind of an error. The list is closed: scripts may switch on it.
type Kind string

// The kinds of errors.
const (
	InvalidRow     Kind = "invalid_row"
	Render         Kind = "render"
	DNS            Kind = "dns"
	Connect        Kind = "connect"
	TLS            Kind = "tls"
	Write          Kind = "write"
	Timeout        Kind = "timeout"
	Reset          Kind = "reset"
	BodyRead       Kind = "body_read"
	BodyTooLarge   Kind = "body_too_large"
	Redirect       Kind = "redirect"
	HTTP4xx        Kind = "http_4xx"
	HTTP5xx        Kind = "http_5xx"
	RateLimited    Kind = "rate_limited"
	Overloaded     Kind = "overloaded" // only by a rule of the user
	QuotaExhausted Kind = "quota_exhausted"
	Auth           Kind = "auth"
	CircuitOpen    Kind = "circuit_open"
	Budget         Kind = "budget"
	Canceled       Kind = "canceled"
	UnknownOutcome Kind = "unknown_outcome"
	IO             Kind = "io"
)

// Kinds returns the closed list.
func Kinds() []Kind {
	return []Kind{
		InvalidRow, Render, DNS, Connect, TLS, Write, Timeout, Reset, BodyRead, BodyTooLarge,
		Redirect, HTTP4xx, HTTP5xx, RateLimited, Overloaded, QuotaExhausted, Auth, CircuitOpen, Budget,
		Canceled, UnknownOutcome, IO,
	}
}
