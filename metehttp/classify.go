package metehttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/quota"
)

// Class is the kind of a failed attempt, for records and statistics.
type Class string

// The classes of failures.
const (
	OK             Class = ""
	DNS            Class = "dns"
	Connect        Class = "connect"
	TLS            Class = "tls"
	Write          Class = "write"
	Timeout        Class = "timeout"
	Reset          Class = "reset"
	Redirect       Class = "redirect"
	BodyRead       Class = "body_read"
	ClientError    Class = "http_4xx"
	ServerError    Class = "http_5xx"
	RateLimited    Class = "rate_limited"
	QuotaExhausted Class = "quota_exhausted"
	Auth           Class = "auth"
	Canceled       Class = "canceled"
	Invalid        Class = "invalid_row" // the request itself cannot be sent
)

// Attempt is a finished attempt, to be judged.
type Attempt struct {
	Request  *http.Request
	Response *http.Response // nil if none came
	// Body is the beginning of the response's body, where many providers say
	// what is wrong, some of them with a status of 200. It may be nil.
	Body []byte
	// Provider names the dialect of package quota, as in "github"; empty means
	// the common rules.
	Provider string
	// Err is the error of the transport, or with a Response, of its body.
	Err error
	// Wire watched the attempt; it may be nil.
	Wire *Wire
	// Replayable says that the request's body can be had again.
	Replayable bool
	// Idempotent says that a repetition counts as one even though the method
	// does not promise it.
	Idempotent bool
	// SkipQuotas says that the quotas in the header of a success need not be
	// read: see mete.Permit.WantsQuotas.
	SkipQuotas bool
}

// Outcome says what the attempt taught: whether the provider pushed back, for
// how long, and whether the request may be made again.
//
// What was never sent may always be repeated, save where it would fail again
// (a name that does not exist, a certificate). A throttle was refused before
// anything was done, so it may be repeated too. After bytes were sent, a
// failure may be repeated if the method is idempotent (RFC 9110, 9.2.2) or the
// attempt says so; once a success has begun to answer, only if the method is.
// In any case the body must be replayable.
//
// A success whose Body says that the provider pushed back (OVER_QUERY_LIMIT,
// the throttles of GraphQL) is a throttle. Quotas are read from every response
// whose header speaks of one, at the cost of some microseconds, save where
// SkipQuotas says otherwise. Beside that a success costs a look at the names of
// its header, and at a Body in JSON about a nanosecond for each byte.
func (a *Attempt) Outcome() mete.Outcome {
	if a.Err == nil && a.Response != nil && a.plain() {
		return mete.Outcome{Answered: true}
	}
	if a.Response != nil && (a.Err == nil || a.Response.StatusCode >= 400) {
		o := a.status()
		o.Repeat = o.Repeat && a.Replayable && !errors.Is(a.Err, context.Canceled)
		return o
	}
	o := mete.Outcome{Err: a.Err}
	f := inspect(a.Err)
	if f.class == Invalid && a.unsent() {
		f = fault{class: Connect, unsent: true} // such as a proxy that refused
	}
	switch {
	case f.final:
	case a.Response != nil:
		o.Repeat = a.Replayable && idempotentMethod(a.Request.Method)
	case f.unsent || a.unsent():
		o.Repeat, o.Free = a.Replayable, true
	default:
		o.Repeat = a.Replayable && a.harmless()
	}
	if f.throttled {
		o.Throttled, o.Free = true, true
	}
	return o
}

// status judges a response by what it says.
func (a *Attempt) status() mete.Outcome {
	status := a.Response.StatusCode
	r := a.reading()
	if status < 400 && !r.Throttled {
		return mete.Outcome{Answered: true, Quotas: r.Quotas}
	}
	o := mete.Outcome{
		Err:        &StatusError{Status: status, Header: a.Response.Header, RetryAfter: r.RetryAfter},
		RetryAfter: r.RetryAfter,
		Hinted:     r.HasRetryAfter,
		Terminal:   r.Spent,
		Quotas:     r.Quotas,
	}
	switch {
	case r.Throttled:
		o.Throttled, o.Free = true, true
		o.Repeat = status != http.StatusTeapot // with a delay this is a ban
	case status == 500, status == 502, status == 503, status == 504, status == 408:
		o.Repeat = a.harmless()
	case status == 409: // with a key: the first request is still at work
		o.Answered = true
		o.Repeat = a.Idempotent && !idempotentMethod(a.Request.Method)
	case status == 421, status == 425: // refused before it was processed
		o.Answered = true
		o.Repeat, o.Free = true, true
	default:
		o.Answered = status < 500
	}
	o.Repeat = o.Repeat && !r.Terminal
	return o
}

// plain reports whether the response is one of the many successes that say
// nothing of quotas, or nothing that anybody wants to know.
func (a *Attempt) plain() bool {
	status := a.Response.StatusCode
	if status >= 400 || !a.SkipQuotas && quota.Mentioned(a.Response.Header) {
		return false
	}
	return len(a.Body) == 0 || status < 300 && !quota.Suspicious(a.Provider, a.Body)
}

func (a *Attempt) reading() quota.Reading {
	return quota.Parse(quota.Response{
		Provider: a.Provider, Status: a.Response.StatusCode, Header: a.Response.Header, Body: a.Body, Now: time.Now(),
	})
}

// harmless reports whether doing it twice is as good as once.
func (a *Attempt) harmless() bool { return a.Idempotent || idempotentMethod(a.Request.Method) }

// unsent reports whether surely nothing was sent.
func (a *Attempt) unsent() bool {
	return a.Err != nil && a.Response == nil && a.Wire != nil && a.Wire.unsent()
}

// Class names the kind of the attempt's failure; empty is success.
func (a *Attempt) Class() Class {
	if a.Err != nil {
		class := inspect(a.Err).class
		switch {
		case a.Response != nil && class != Timeout && class != Canceled:
			return BodyRead
		case class == Invalid && a.unsent():
			return Connect
		}
		return class
	}
	s := a.Response.StatusCode
	if s >= 400 || len(a.Body) > 0 {
		switch r := a.reading(); {
		case r.Spent:
			return QuotaExhausted
		case r.Throttled && s < 500:
			return RateLimited
		}
	}
	switch {
	case s < 300:
		return OK
	case s < 400:
		return Redirect
	case s == 401 || s == 403 || s == 407:
		return Auth
	case s == 509 || s == 529:
		return RateLimited
	case s == 402:
		return QuotaExhausted
	case s < 500:
		return ClientError
	}
	return ServerError
}

// StatusError is the error of a response that is one, by its status or by what
// its body says.
type StatusError struct {
	Status int
	Header http.Header
	// RetryAfter is how long the provider asks to stay away; 0 if it does not.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	if e.Status < 400 {
		return fmt.Sprintf("the provider answered %d %s, and in the body that it pushes back", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("the provider answered %d %s", e.Status, http.StatusText(e.Status))
}

// fault is what an error of the transport means.
type fault struct {
	class     Class
	unsent    bool // surely nothing was sent, or nothing was processed
	final     bool // a repetition is bound to fail, or nobody waits for it
	throttled bool
}

func inspect(err error) fault {
	text := err.Error()
	if errors.Is(err, context.Canceled) || strings.HasPrefix(text, "net/http: request canceled") {
		return fault{class: Canceled, final: true}
	}
	if handshake(err) {
		return fault{class: TLS, unsent: true, final: true}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		// Without a free file descriptor a name may seem not to exist
		// (golang/go#18588).
		return fault{class: DNS, unsent: true, final: dns.IsNotFound && !tooManyFiles(err)}
	}
	op, isOp := errors.AsType[*net.OpError](err)
	if isOp && (op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "socks connect") {
		return fault{class: Connect, unsent: true}
	}
	if text == "net/http: TLS handshake timeout" {
		return fault{class: TLS, unsent: true}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return fault{class: Timeout}
	}
	if f, ok := inspectHTTP2(err, text); ok {
		return f
	}
	switch {
	case isOp && op.Op == "write", errors.Is(err, syscall.EPIPE):
		return fault{class: Write}
	case isOp, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, net.ErrClosed),
		text == "http: server closed idle connection",
		strings.HasPrefix(text, "net/http: HTTP/1.x transport connection broken"):
		return fault{class: Reset}
	}
	return fault{class: Invalid, final: true}
}

// handshake reports whether TLS failed for a reason that stays: a certificate,
// or an alert of the protocol.
func handshake(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error") || strings.HasPrefix(err.Error(), "tls: ")
}

func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || strings.Contains(err.Error(), "too many open files")
}

// The HTTP/2 errors of net/http that mean that the request was not processed:
// it came after the last stream that the server accepted, or met a connection
// that was no longer usable. They have neither names nor types.
var unprocessed = []string{
	"http2: Transport received Server's graceful shutdown GOAWAY",
	"http2: Transport received GOAWAY from server ErrCode:",
	"http2: client conn not usable",
	"http2: client conn could not be established",
	"http2: client conn is closed",
}

// inspectHTTP2 reads the errors of HTTP/2 (RFC 9113, 8.7).
func inspectHTTP2(err error, text string) (f fault, ok bool) {
	f.class = Reset
	if strings.Contains(text, "GOAWAY") && strings.Contains(text, "ENHANCE_YOUR_CALM") {
		f.throttled = true
	}
	for _, s := range unprocessed {
		if strings.Contains(text, s) {
			f.unsent = true
			return f, true
		}
	}
	var stream streamError
	if errors.As(err, &stream) {
		f.unsent = stream.Code == refusedStream
		f.throttled = stream.Code == enhanceYourCalm
		return f, true
	}
	lost := strings.HasPrefix(text, "http2: server sent GOAWAY") ||
		strings.HasPrefix(text, "http2: client connection lost") ||
		strings.HasPrefix(text, "http2: client connection force closed") ||
		strings.HasPrefix(text, "connection error: ")
	return f, lost
}

// streamError has the shape by which net/http lets its HTTP/2 stream errors be
// found.
type streamError struct {
	StreamID uint32
	Code     streamCode
	Cause    error
}

type streamCode uint32

func (streamError) Error() string { return "http2: stream error" }

const (
	refusedStream   streamCode = 0x7
	enhanceYourCalm streamCode = 0xb
)

func bodyReplayable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func idempotentMethod(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// keyed reports whether the request has an idempotency key, as net/http sees it.
func keyed(req *http.Request) bool {
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}
