package stub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener of in-memory connections, for tests in virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// bubble runs body in virtual time against a server with a client.
func bubble(t *testing.T, cfg Config, body func(t *testing.T, s *Server, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		s, p := New(cfg), newPipes()
		if err := s.serve(p); err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(s.CertPEM())
		transport := &http.Transport{
			DialContext:         p.dial,
			TLSClientConfig:     &tls.Config{RootCAs: roots},
			MaxIdleConnsPerHost: 1000,
			ForceAttemptHTTP2:   cfg.HTTP2,
		}
		defer s.Close()
		defer transport.CloseIdleConnections()
		body(t, s, &client{t, &http.Client{Transport: transport}, s, p})
	})
}

type client struct {
	t *testing.T
	*http.Client
	s *Server
	p *pipes
}

type reply struct {
	status int
	header http.Header
	body   string
	took   time.Duration
	err    error
}

func (c *client) do(method, path, body string, header ...string) reply {
	start := time.Now()
	req, err := http.NewRequest(method, c.s.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		return reply{err: err, took: time.Since(start)}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b), time.Since(start), err}
}

func (c *client) get(path string) reply { c.t.Helper(); return c.do("GET", path, "") }

func (c *client) fault(body string) {
	c.t.Helper()
	if r := c.do("POST", "/stub/faults", body); r.status != 204 {
		c.t.Fatalf("fault %s: %d %s", body, r.status, r.body)
	}
}

// together sends n requests at once.
func (c *client) together(n int) []reply {
	replies := make([]reply, n)
	var wg sync.WaitGroup
	for i := range replies {
		wg.Go(func() { replies[i] = c.get("/?n=" + strconv.Itoa(i)) })
	}
	wg.Wait()
	return replies
}

func count(replies []reply, status int) (n int) {
	for _, r := range replies {
		if r.err == nil && r.status == status {
			n++
		}
	}
	return n
}
