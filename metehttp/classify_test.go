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
	"net/http/httptrace"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/metehq/mete"
)

// timedOut is an error as net makes it when a deadline passes.
var timedOut = os.ErrDeadlineExceeded

func opError(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }

// h2Error has the shape of net/http's stream errors and the same As.
type h2Error struct{ code streamCode }

func (e h2Error) Error() string { return fmt.Sprintf("stream error: stream ID 1; code %d", e.code) }

func (e h2Error) As(target any) bool {
	s, ok := target.(*streamError)
	if ok {
		s.Code = e.code
	}
	return ok
}

var gotConn = httptrace.GotConnInfo{}

const broken = "net/http: HTTP/1.x transport connection broken: "

// What may be repeated: by an idempotent method (I), with an idempotency key or
// the user's word (K), by any other method (N).
func TestRetrySafety(t *testing.T) {
	const (
		all  = "IKN"
		safe = "IK"
		none = ""
	)
	wire := func(asked, got bool) *Wire {
		w := &Wire{}
		w.Watch(context.Background(), nil)
		if asked {
			w.trace.GetConn("")
		}
		if got {
			w.trace.GotConn(gotConn)
		}
		return w
	}
	for _, row := range []struct {
		event   string
		attempt Attempt
		repeat  string
		class   Class
		flags   string // Throttled, Answered, Free, Hinted, Terminal, Quotas
	}{
		// Never sent.
		{"no such name", Attempt{Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, none, DNS, ""},
		{"name server fails", Attempt{Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, all, DNS, "F"},
		{"name server is slow", Attempt{Err: opError("dial", &net.DNSError{Err: "timeout", IsTimeout: true})}, all, DNS, "F"},
		{"name not found for want of files", Attempt{Err: &net.DNSError{Err: "dial udp: socket: too many open files", IsNotFound: true}}, all, DNS, "F"},
		{"refused", Attempt{Err: opError("dial", syscall.ECONNREFUSED)}, all, Connect, "F"},
		{"no route", Attempt{Err: opError("dial", syscall.EHOSTUNREACH)}, all, Connect, "F"},
		{"no more files", Attempt{Err: opError("dial", syscall.EMFILE)}, all, Connect, "F"},
		{"dial timeout", Attempt{Err: opError("dial", timedOut)}, all, Connect, "F"},
		{"proxy unreachable", Attempt{Err: opError("proxyconnect", syscall.ECONNREFUSED)}, all, Connect, "F"},
		{"proxy answers CONNECT with 502", Attempt{Err: errors.New("Bad Gateway"), Wire: wire(true, false)}, all, Connect, "F"},
		{"certificate", Attempt{Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, none, TLS, ""},
		{"host name", Attempt{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a.test"}}, none, TLS, ""},
		{"alert", Attempt{Err: opError("remote error", tls.AlertError(40))}, none, TLS, ""},
		{"no common version", Attempt{Err: errors.New("tls: server selected unsupported protocol version 301")}, none, TLS, ""},
		{"handshake timeout", Attempt{Err: errors.New("net/http: TLS handshake timeout")}, all, TLS, "F"},
		{"handshake cut", Attempt{Err: io.EOF, Wire: wire(true, false)}, all, Reset, "F"},
		{"handshake reset", Attempt{Err: opError("read", syscall.ECONNRESET), Wire: wire(true, false)}, all, Reset, "F"},
		{"attempt timeout while it waits for a connection", Attempt{Err: context.DeadlineExceeded, Wire: wire(true, false)}, all, Timeout, "F"},
		// Sent, or nobody knows.
		{"idle connection closed", Attempt{Err: errors.New("http: server closed idle connection"), Wire: wire(true, true)}, safe, Reset, ""},
		{"EOF", Attempt{Err: io.EOF}, safe, Reset, ""},
		{"EOF with a base that tells nothing", Attempt{Err: io.EOF, Wire: wire(false, false)}, safe, Reset, ""},
		{"reset", Attempt{Err: opError("read", syscall.ECONNRESET), Wire: wire(true, true)}, safe, Reset, ""},
		{"broken pipe", Attempt{Err: opError("write", syscall.EPIPE), Wire: wire(true, true)}, safe, Write, ""},
		{"connection broken", Attempt{Err: fmt.Errorf("%s%w", broken, errors.New("malformed HTTP status code"))}, safe, Reset, ""},
		{"attempt timeout", Attempt{Err: context.DeadlineExceeded, Wire: wire(true, true)}, safe, Timeout, ""},
		{"no header in time", Attempt{Err: timedOut}, safe, Timeout, ""},
		{"success, body cut", Attempt{Response: status(200), Err: io.ErrUnexpectedEOF}, "I", BodyRead, ""},
		{"throttle, body cut", Attempt{Response: status(429), Err: io.ErrUnexpectedEOF}, all, BodyRead, "TF"},
		{"success, body does not decode", Attempt{Response: status(200), Err: errors.New("gzip: invalid header")}, none, BodyRead, ""},
		// HTTP/2.
		{"REFUSED_STREAM", Attempt{Err: h2Error{refusedStream}, Wire: wire(true, true)}, all, Reset, "F"},
		{"stream INTERNAL_ERROR", Attempt{Err: h2Error{2}}, safe, Reset, ""},
		{"stream CANCEL", Attempt{Err: h2Error{8}}, safe, Reset, ""},
		{"stream ENHANCE_YOUR_CALM", Attempt{Err: h2Error{enhanceYourCalm}}, safe, Reset, "TF"},
		{"GOAWAY before the stream", Attempt{Err: errors.New("http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written")}, all, Reset, "F"},
		{"GOAWAY before the first stream", Attempt{Err: errors.New("http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM")}, all, Reset, "TF"},
		{"GOAWAY after the stream", Attempt{Err: errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=9, ErrCode=NO_ERROR, debug=""`)}, safe, Reset, ""},
		{"GOAWAY ENHANCE_YOUR_CALM", Attempt{Err: errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=9, ErrCode=ENHANCE_YOUR_CALM, debug="too_many_pings"`)}, safe, Reset, "TF"},
		{"HTTP/2 connection lost", Attempt{Err: errors.New("http2: client connection lost")}, safe, Reset, ""},
		// The caller.
		{"canceled", Attempt{Err: &url.Error{Err: context.Canceled}}, none, Canceled, ""},
		{"canceled while dialing", Attempt{Err: opError("dial", context.Canceled)}, none, Canceled, ""},
		{"bad scheme", Attempt{Err: errors.New(`unsupported protocol scheme "ftp"`)}, none, Invalid, ""},
		{"bad header", Attempt{Err: errors.New("net/http: invalid header field name"), Wire: wire(false, false)}, none, Invalid, ""},
		// Statuses.
		{"200", Attempt{Response: status(200)}, none, OK, "A"},
		{"200 with a quota", Attempt{Response: status(200, "X-RateLimit-Remaining: 7")}, none, OK, "AQ"},
		{"200 with data", Attempt{Response: status(200), Body: []byte(`{"status":"OK"}`)}, none, OK, "A"},
		{"200 that is over the limit", Attempt{Response: status(200), Body: []byte(`{"status":"OVER_QUERY_LIMIT"}`)}, all, RateLimited, "TF"},
		{"200, the day is over", Attempt{Response: status(200), Body: []byte(`{"status":"OVER_DAILY_LIMIT"}`)}, none, QuotaExhausted, "TFX"},
		{"200 of GraphQL", Attempt{Response: status(200), Body: []byte(`{"errors":[{"type":"RATE_LIMITED"}]}`)}, all, RateLimited, "TF"},
		{"302", Attempt{Response: status(302)}, none, Redirect, "A"},
		{"400", Attempt{Response: status(400)}, none, ClientError, "A"},
		{"401", Attempt{Response: status(401)}, none, Auth, "A"},
		{"402", Attempt{Response: status(402)}, none, QuotaExhausted, "A"},
		{"403", Attempt{Response: status(403)}, none, Auth, "A"},
		{"403 with a delay", Attempt{Response: status(403, "Retry-After: 60")}, all, RateLimited, "TFH"},
		{"404", Attempt{Response: status(404)}, none, ClientError, "A"},
		{"408", Attempt{Response: status(408)}, safe, ClientError, ""},
		{"409", Attempt{Response: status(409)}, "K", ClientError, "A"},
		{"418 ban", Attempt{Response: status(418, "Retry-After: 60")}, none, RateLimited, "TFH"},
		{"421", Attempt{Response: status(421)}, all, ClientError, "AF"},
		{"425", Attempt{Response: status(425)}, all, ClientError, "AF"},
		{"429", Attempt{Response: status(429)}, all, RateLimited, "TF"},
		{"429 with a delay", Attempt{Response: status(429, "Retry-After: 0")}, all, RateLimited, "TFH"},
		{"429, the money is spent", Attempt{Response: status(429), Body: []byte(`{"error":{"code":"insufficient_quota"}}`)}, none, QuotaExhausted, "TFX"},
		{"429, the server forbids it", Attempt{Response: status(429, "X-Should-Retry: false")}, none, RateLimited, "TF"},
		{"400 with a throttle code", Attempt{Response: status(400), Body: []byte(`{"__type":"ThrottlingException"}`)}, all, RateLimited, "TF"},
		{"500", Attempt{Response: status(500)}, safe, ServerError, ""},
		{"500, the server forbids it", Attempt{Response: status(500, "Stripe-Should-Retry: false")}, none, ServerError, ""},
		{"501", Attempt{Response: status(501)}, none, ServerError, ""},
		{"502", Attempt{Response: status(502)}, safe, ServerError, ""},
		{"502 with a delay", Attempt{Response: status(502, "Retry-After: 7")}, safe, ServerError, "H"},
		{"503", Attempt{Response: status(503)}, safe, ServerError, ""},
		{"503 with a delay", Attempt{Response: status(503, "Retry-After: 7")}, all, ServerError, "TFH"},
		{"504", Attempt{Response: status(504)}, safe, ServerError, ""},
		{"505", Attempt{Response: status(505)}, none, ServerError, ""},
		{"529", Attempt{Response: status(529)}, all, RateLimited, "TF"},
	} {
		t.Run(row.event, func(t *testing.T) {
			repeat, flags := "", ""
			for _, kind := range []struct {
				name, method string
				idempotent   bool
			}{{"I", "GET", false}, {"K", "POST", true}, {"N", "PATCH", false}} {
				a := row.attempt
				a.Request, _ = http.NewRequest(kind.method, "http://example.test/", nil)
				a.Idempotent, a.Replayable = kind.idempotent, true
				if a.Outcome().Repeat {
					repeat += kind.name
				}
				flags = flagsOf(a.Outcome())
				if got := a.Class(); got != row.class {
					t.Errorf("class %q, want %q", got, row.class)
				}
				a.Replayable = false
				if a.Outcome().Repeat {
					t.Error("repeated without its body")
				}
			}
			if repeat != row.repeat {
				t.Errorf("repeated for %q, want %q", repeat, row.repeat)
			}
			if flags != row.flags {
				t.Errorf("outcome %q, want %q", flags, row.flags)
			}
		})
	}
}

func flagsOf(o mete.Outcome) (s string) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"T", o.Throttled}, {"A", o.Answered}, {"F", o.Free}, {"H", o.Hinted}, {"X", o.Terminal}, {"Q", len(o.Quotas) > 0}} {
		if f.set {
			s += f.name
		}
	}
	return s
}

// A key counts as net/http counts it: it repeats such requests by itself.
func TestIdempotencyKey(t *testing.T) {
	for name, want := range map[string]bool{"Idempotency-Key": true, "X-Idempotency-Key": true, "X-Key": false} {
		req := request(t, t.Context(), "POST")
		req.Header.Set(name, "k1")
		if keyed(req) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// What a success, a failure and an end of the caller's own teach beside the
// table above.
func TestOutcomesApart(t *testing.T) {
	get := request(t, t.Context(), "GET")
	for name, c := range map[string]struct {
		a      Attempt
		repeat bool
		class  Class
	}{
		"503, cancelled while it was read": {Attempt{Response: status(503), Err: context.Canceled}, false, Canceled},
		"503, cut off while it was read":   {Attempt{Response: status(503), Err: io.ErrUnexpectedEOF}, true, BodyRead},
		"409 of a method without need":     {Attempt{Response: status(409), Idempotent: true}, false, ClientError},
		"cancelled inside of net/http":     {Attempt{Err: errors.New("net/http: request canceled while waiting for connection")}, false, Canceled},
		"a broken pipe":                    {Attempt{Err: fmt.Errorf("readfrom: %w", syscall.EPIPE)}, true, Write},
	} {
		c.a.Request, c.a.Replayable = get, true
		if o := c.a.Outcome(); o.Repeat != c.repeat || c.a.Class() != c.class {
			t.Errorf("%s: repeat %v, class %q", name, o.Repeat, c.a.Class())
		}
	}
	limited := Attempt{Request: get, Response: status(429)}
	for name, value := range map[string]string{"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "60"} {
		limited.Response.Header.Set(name, value)
	}
	if o := limited.Outcome(); len(o.Quotas) != 1 || !o.Quotas[0].HasRemaining {
		t.Errorf("the quotas of a refusal: %+v", o.Quotas)
	}
}
