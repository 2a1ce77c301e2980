// Package metehttp puts an http.Client behind a gate.
//
//	client := &http.Client{Transport: metehttp.New(geo)}
//
// Every request is admitted by the gate: retries, redirects, and what
// net/http sends again by itself, too. A permit is held until the response's
// body has been read to its end or closed, since that is how long the
// provider works for the call. Starts are stamped when the request goes to the
// wire, so that a slow handshake cannot bunch them. A Base that does not call
// the hooks of net/http/httptrace has its starts stamped when it answers.
//
// Request bodies are streamed and never buffered. A request is repeated only
// where that is safe: see Attempt.Outcome.
package metehttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete"
)

// Transport is an http.RoundTripper that asks a gate before every request. Its
// fields must not be changed once it is in use.
//
// RoundTrip blocks until the gate admits the request, as Gate.Acquire does,
// and returns the gate's error if it does not. After the last attempt it
// returns the response, whatever its status, or the error of the connection.
// Of a response with an error status it reads the first 64 KiB before, for at
// most 5 s, since many providers say only there what is wrong; the caller
// still gets all of the body. A refusal that follows an attempt is a
// *mete.Rejected that wraps the attempt's *StatusError or connection error.
type Transport struct {
	// Gate chooses the gate of a request.
	Gate func(*http.Request) (*mete.Gate, error)
	// Base makes the requests; nil is http.DefaultTransport. It should keep as
	// many idle connections as there are permits; NewPool does.
	Base http.RoundTripper
	// Idempotent says that a repeated POST or PATCH does no harm. A request
	// with an Idempotency-Key is taken to be so anyway.
	Idempotent bool
	// BodyIdle ends a response whose body stands still for this long. 0 is no
	// bound.
	BodyIdle time.Duration
	// Provider names the dialect in which the provider speaks of its quotas, as
	// in "github" (see package quota); empty means the common rules.
	Provider string
	// SoftErrors says that the provider pushes back with a status of 200 and an
	// error in JSON, as OVER_QUERY_LIMIT and the GraphQL APIs of GitHub and
	// Shopify do. Then RoundTrip reads the first 64 KiB of every success in
	// JSON before it returns, however long they take.
	SoftErrors bool
}

// New returns a transport through one gate, on a connection pool of its size.
func New(g *mete.Gate) *Transport {
	return &Transport{
		Gate: func(*http.Request) (*mete.Gate, error) { return g, nil },
		Base: NewPool(g.Config().MaxConcurrency()),
	}
}

// NewSet returns a transport with one gate for each place that requests
// connect to: scheme, host and port of the URL, whatever the Host header says.
func NewSet(s *mete.Set, perHost int) *Transport {
	return &Transport{
		Gate: func(r *http.Request) (*mete.Gate, error) { return s.Gate(mete.HostKey(r.URL)) },
		Base: NewPool(perHost),
	}
}

// NewPool returns a copy of http.DefaultTransport that keeps as many idle
// connections to a host as there may be requests in flight, so that they are
// reused (golang/go#13801). It does not bound the connections: the gate does,
// and a second bound would only hide it. 0 means 64.
func NewPool(perHost int) *http.Transport {
	if perHost <= 0 {
		perHost = 64
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = Watched(t.DialContext)
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = perHost
	t.MaxConnsPerHost = 0
	// Shorter than the time after which most servers close: a request on a
	// connection that is just being closed fails.
	t.IdleConnTimeout = 30 * time.Second
	return t
}

type callKey struct{}

// WithCall returns a context whose requests ask for the call's lane, weight and
// costs, and wait as it says. Each attempt and each redirect asks for them
// anew. Its Wire does not matter: a Transport stamps starts where there is need.
func WithCall(ctx context.Context, c mete.Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CloseIdleConnections closes those of Base. http.Client's method of that name
// calls it.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	gate, err := t.Gate(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	call, _ := req.Context().Value(callKey{}).(mete.Call)
	call.Wire = gate.Stamped()
	tries := gate.Tries(req.Context(), call)
	var last error
	for {
		permit, err := tries.Next()
		if err != nil {
			if tries.Attempts() == 0 {
				closeBody(req)
			}
			return nil, err
		}
		resp, failed, again, err := t.attempt(req, tries, permit, call.Wire, last)
		switch {
		case again:
			last = failed
			continue
		case err == nil:
			return resp, nil
		case tries.Refusal() != nil:
			return nil, tries.Refusal()
		}
		return nil, err
	}
}

// exchange is the request of one attempt and the body of its response, so that
// both are one allocation.
type exchange struct {
	request http.Request
	body    body
}

type watchedExchange struct {
	exchange
	wire Wire
}

// attempt makes one attempt and reports whether there is to be another one, and
// if so why this one failed. last is the error of the attempt before.
func (t *Transport) attempt(req *http.Request, tries *mete.Tries, permit *mete.Permit, stamped bool, last error) (resp *http.Response, failed error, again bool, err error) {
	kept := true
	defer func() {
		if kept {
			permit.Release() // a failure, or a panic in the base transport
		}
	}()
	done := Attempt{Provider: t.Provider, Replayable: bodyReplayable(req), Idempotent: t.Idempotent || keyed(req), SkipQuotas: !permit.WantsQuotas()}
	ctx := tries.Context()
	var x *exchange
	// Whether anything was sent decides if other requests may be repeated.
	if stamped || done.Replayable && !done.Idempotent && !idempotentMethod(req.Method) {
		w := &watchedExchange{}
		x, done.Wire = &w.exchange, &w.wire
		ctx = done.Wire.stamp(ctx, permit)
	} else {
		x = &exchange{}
	}
	x.request = *req.WithContext(ctx)
	out := &x.request
	if tries.Attempts() > 1 && req.Body != nil && req.Body != http.NoBody {
		body, err := req.GetBody()
		if err != nil {
			return nil, nil, false, fmt.Errorf("metehttp: the request's body cannot be had again: %w, after %w", err, last)
		}
		out.Body = body
	}
	resp, err = t.base().RoundTrip(out)
	done.Request, done.Response, done.Err = out, resp, err
	if done.Wire != nil && !done.unsent() {
		permit.Sent() // no hook told when, or it may still be written
	}
	whole := false
	switch {
	case err != nil:
	case resp.StatusCode >= 400:
		done.Body, whole = peek(resp, peekTime)
	case t.SoftErrors && isJSON(resp):
		done.Body, whole = peek(resp, 0)
	}
	o := done.Outcome()
	again = tries.Again(o)
	switch {
	case again:
		kept = false
		if resp != nil {
			resp.Body.Close()
		}
	case err == nil:
		if resp.Request == out {
			resp.Request = req
		}
		if !whole {
			kept = false
			x.hold(resp, permit, t.BodyIdle)
		}
	}
	return resp, o.Err, again, err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
