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
	// Err is the error of the transport, or with a Response, of its body.
	Err error
	// Wire watched the attempt; it may be nil.
	Wire *Wire
	// Replayable says that the request's body can be had again.
	Replayable bool
	// Idempotent says that a repetition counts as one even though the method
	// does not promise it.
	Idempotent bool
}

// Outcome says what the attempt taught: whether the provider pushed back, for
// how long, and whether the request may be made again.
//
// What was never sent may always be repeated, save where it would fail again
// (a name that does not exist, a certificate). A throttle was refused before
// anything was done, so it may be repeated too. After bytes were sent, a
// failure may be repeated if the method is idempotent (RFC 9110, 9.2.2) or the
// attempt says so. In any case the body must be replayable.
func (a Attempt) Outcome() mete.Outcome {
	repeatable := a.Replayable && (idempotentMethod(a.Request.Method) || a.Idempotent)
	if a.Err != nil {
		o := mete.Outcome{Err: a.Err}
		class, unsent, final := inspect(a.Err)
		if a.Wire != nil && a.Response == nil && a.Wire.Sent().IsZero() && class != Timeout {
			unsent = true
		}
		switch {
		case final:
		case unsent || refusedStream(a.Err):
			o.Repeat, o.Free = a.Replayable, true
		default:
			o.Repeat = repeatable
		}
		return o
	}
	resp := a.Response
	if resp.StatusCode < 400 {
		return mete.Outcome{Answered: true}
	}
	o := mete.Outcome{Err: &StatusError{Status: resp.StatusCode, Header: resp.Header}}
	reading := quota.Parse(quota.Response{Status: resp.StatusCode, Header: resp.Header, Now: time.Now()})
	if reading.Throttled {
		o.Throttled, o.Free = true, true
		o.RetryAfter, o.Hinted = reading.RetryAfter, reading.HasRetryAfter
		o.Repeat = a.Replayable && !reading.Terminal
		return o
	}
	switch resp.StatusCode {
	case 500, 502, 503, 504, 408:
		o.Repeat = repeatable
	case 409:
		o.Answered = true
		o.Repeat = repeatable && !idempotentMethod(a.Request.Method)
	case 421, 425:
		o.Answered = true
		o.Repeat, o.Free = a.Replayable, true
	default:
		o.Answered = resp.StatusCode < 500
	}
	return o
}

// Class names the kind of the attempt's failure; empty is success.
func (a Attempt) Class() Class {
	if a.Err != nil {
		class, _, _ := inspect(a.Err)
		if a.Response != nil && class != Timeout && class != Canceled {
			return BodyRead
		}
		return class
	}
	switch s := a.Response.StatusCode; {
	case s < 300:
		return OK
	case s < 400:
		return Redirect
	case s == 401 || s == 403 || s == 407:
		return Auth
	case s == 429 || s == 420 || s == 509 || s == 529:
		return RateLimited
	case s == 402:
		return QuotaExhausted
	case s < 500:
		return ClientError
	}
	return ServerError
}

// StatusError is the error of a response that is one.
type StatusError struct {
	Status int
	Header http.Header
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the provider answered %d %s", e.Status, http.StatusText(e.Status))
}

// inspect finds out what an error of the transport means: its class, whether
// surely nothing was sent, and whether a repetition is bound to fail.
func inspect(err error) (class Class, unsent, final bool) {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS, true, dns.IsNotFound
	}
	if cert(err) {
		return TLS, true, true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return Connect, true, false
	}
	if err.Error() == "net/http: TLS handshake timeout" {
		return TLS, true, false
	}
	if errors.Is(err, context.Canceled) {
		return Canceled, false, true
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return Timeout, false, false
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), refusedStream(err), isStream(err):
		return Reset, false, false
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return Reset, false, false
	}
	if s := err.Error(); s == "http: server closed idle connection" || s == "net/http: HTTP/1.x transport connection broken" {
		return Reset, false, false
	}
	return Invalid, false, true
}

func cert(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
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

// refused is REFUSED_STREAM of RFC 9113: the request was not processed.
const refused streamCode = 7

func refusedStream(err error) bool {
	var e streamError
	return errors.As(err, &e) && e.Code == refused
}

func isStream(err error) bool {
	var e streamError
	return errors.As(err, &e)
}

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

func keyed(req *http.Request) bool {
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}
