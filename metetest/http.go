package metetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RoundTrip answers a request without a socket, as an http.RoundTripper: the
// Base of a metehttp.Transport, or the Transport of a client that goes past the
// gate. It blocks until the provider has answered or the request's context ends.
//
// The call is in flight until the response's body has been read to its end or
// closed, as with an answer that is larger than the buffers on the way. The
// hooks of net/http/httptrace are called as if a connection were at hand.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: noConn{}, Reused: true})
	}
	key, err := identify(r)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err // a transport sends nothing then
	}
	id, reply := p.begin(key)
	if err := sleep(r.Context(), reply.After); err != nil {
		p.end(id, 0)
		return nil, err
	}
	if trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", reply.Status, http.StatusText(reply.Status)),
		StatusCode: reply.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        reply.header(),
		ContentLength: int64(len(reply.Body)),
		Request:       r,
		Body: &body{
			text: strings.NewReader(reply.Body),
			end:  sync.OnceFunc(func() { p.end(id, reply.Status) }),
		},
	}, nil
}

// ServeHTTP answers a request, as the http.Handler of an httptest.Server. The
// call is in flight from here until the answer is about to be written.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := identify(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, reply := p.begin(key)
	if err := sleep(r.Context(), reply.After); err != nil {
		p.end(id, 0)
		return
	}
	p.end(id, reply.Status)
	for name, values := range reply.header() {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body) // the caller may have left; nothing is lost
}

// header is the header of the answer.
func (r Reply) header() http.Header {
	h := http.Header{}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(r.RetryAfter/time.Second), 10))
	}
	return h
}

// identify says what a request is for. It reads the body to its end and closes
// it, as a transport does.
func identify(r *http.Request) (string, error) {
	sum := sha256.New()
	var n int64
	if r.Body != nil {
		var err error
		n, err = io.Copy(sum, r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return "", fmt.Errorf("reading the request's body: %w", err)
		}
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		return "Idempotency-Key " + key, nil
	}
	key := r.Method + " " + r.URL.String()
	if n > 0 {
		key += fmt.Sprintf(" with body %x", sum.Sum(nil)[:6])
	}
	return key, nil
}

// body is a response's body that says when it has been read or closed.
type body struct {
	text *strings.Reader
	end  func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	b.end()
	return nil
}

// noConn is the connection of a provider that has none: it can be closed.
type noConn struct{ net.Conn }

func (noConn) Close() error { return nil }
