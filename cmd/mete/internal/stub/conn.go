package stub

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"
)

// listener hands out connections that stamp arrivals.
type listener struct {
	net.Listener
	s   *Server
	tls *tls.Config // nil: plain, or net/http puts TLS on top (HTTP/2)
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, raw: raw, s: l.s, opened: time.Now()}
	switch {
	case l.tls != nil:
		c.Conn = tls.Server(&lateConn{Conn: raw, c: c}, l.tls)
		c.stamps = true
	case l.s.cfg.TLS:
		c.Conn = &lateConn{Conn: raw, c: c}
	default:
		c.stamps = true
		c.hold = l.s.cfg.Handshake > 0
	}
	l.s.connMu.Lock()
	l.s.conns[c] = struct{}{}
	l.s.connMu.Unlock()
	return c, nil
}

// conn stamps the first read of each request. net/http uses a connection for
// one request at a time, so what only the handler touches needs no lock.
type conn struct {
	net.Conn // with TLS inside, if any
	raw      net.Conn
	s        *Server
	opened   time.Time
	stamps   bool         // reads are of requests, not of TLS records
	stamp    atomic.Int64 // when the request being read began; 0: not yet
	hold     bool         // the first read is held back by Config.Handshake
	counted  int64        // the audit that counted it last; under the ledger's lock
	buf      []byte       // of the handler
	standing []standing   // of the handler
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.stamps && c.stamp.Load() == 0 {
		c.stamp.Store(c.s.now())
	}
	if c.hold && n > 0 {
		// Without TLS the kernel has long completed the handshake and the
		// request is here: what can be held back is only its handling.
		c.hold = false
		c.wait()
	}
	return n, err
}

// wait sleeps for what is left of the handshake's delay.
func (c *conn) wait() {
	d := time.Until(c.opened.Add(c.s.cfg.Handshake))
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.s.done:
	}
}

func (c *conn) Close() error {
	c.s.connMu.Lock()
	delete(c.s.conns, c)
	c.s.connMu.Unlock()
	return c.Conn.Close()
}

// reset ends the connection with a TCP reset and without a TLS farewell.
func (c *conn) reset() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.raw.Close()
}

// lateConn delays the first read, and with it the TLS handshake. The handshake
// runs in the connection's own goroutine, so others are not held up.
type lateConn struct {
	net.Conn
	c    *conn
	read bool
}

func (l *lateConn) Read(p []byte) (int, error) {
	if !l.read {
		l.read = true
		l.c.wait()
	}
	return l.Conn.Read(p)
}

type connKey struct{}

func connContext(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if c, ok := nc.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// drop resets every connection but the caller's.
func (s *Server) drop(except *conn) {
	s.connMu.Lock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		if c != except {
			all = append(all, c)
		}
	}
	s.connMu.Unlock()
	for _, c := range all {
		c.reset()
	}
}
