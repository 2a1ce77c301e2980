package metehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metehq/mete"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gate(t testing.TB, cfg mete.Config) *mete.Gate {
	t.Helper()
	cfg.Name = "test"
	g, err := mete.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func fixed(g *mete.Gate) func(*http.Request) (*mete.Gate, error) {
	return func(*http.Request) (*mete.Gate, error) { return g, nil }
}

// traced calls the hooks of a request as net/http does for a new connection.
func traced(r *http.Request) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GetConn(r.URL.Host)
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// fake answers the n-th request, from 1, as a function says.
type fake struct {
	answer func(n int, r *http.Request) (*http.Response, error)

	mu    sync.Mutex
	n     int
	at    []time.Time
	texts []string
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	traced(r)
	f.mu.Lock()
	f.n++
	n := f.n
	f.at = append(f.at, time.Now())
	f.mu.Unlock()
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		f.texts = append(f.texts, string(text))
		f.mu.Unlock()
	}
	resp, err := f.answer(n, r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// starts are when requests came, since start.
func (f *fake) starts(start time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []time.Duration
	for _, at := range f.at {
		list = append(list, at.Sub(start))
	}
	return list
}

// status is a response with header fields given as "Name: value".
func status(code int, header ...string) *http.Response {
	return answer(code, "text", header...)
}

func answer(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: code, Header: h, Body: &shut{Reader: strings.NewReader(body)}, ContentLength: int64(len(body))}
}

// shut is a body that knows whether it was closed.
type shut struct {
	io.Reader
	mu     sync.Mutex
	closed bool
}

func (s *shut) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *shut) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func get(ctx context.Context, rt http.RoundTripper, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// idle checks that the gate holds nothing.
func idle(t testing.TB, g *mete.Gate) {
	t.Helper()
	if s := g.Stats(); s.InUse != 0 || s.Waiting != 0 || s.Misuse != 0 {
		t.Errorf("left behind: in use %d, waiting %d, misuse %d", s.InUse, s.Waiting, s.Misuse)
	}
}

// most is the largest number of instants in any half-open window.
func most(at []time.Time, window time.Duration) int {
	slices.SortFunc(at, time.Time.Compare)
	n, lo := 0, 0
	for hi := range at {
		for at[hi].Sub(at[lo]) >= window {
			lo++
		}
		n = max(n, hi-lo+1)
	}
	return n
}

// pipes is a network without sockets, so that servers and clients can share a
// synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu    sync.Mutex
	dials int
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		p.mu.Lock()
		p.dials++
		p.mu.Unlock()
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts a server on pipes and returns the pool that reaches it. Both end
// with the test.
func (p *pipes) serve(t testing.TB, srv *http.Server, wrap ...func(net.Listener) net.Listener) *http.Transport {
	t.Helper()
	done := make(chan struct{})
	var l net.Listener = p
	for _, w := range wrap {
		l = w(l)
	}
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	pool := NewPool(0)
	pool.Proxy = nil
	pool.DialContext = p.dial
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		srv.Close()
		<-done
	})
	return pool
}

// certificates are the configurations of a TLS server and its client.
func certificates(h2 bool) (server, client *tls.Config) {
	srv := httptest.NewUnstartedServer(nil)
	srv.EnableHTTP2 = h2
	srv.StartTLS()
	defer srv.Close()
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return srv.TLS.Clone(), &tls.Config{RootCAs: roots}
}
