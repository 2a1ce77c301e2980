package metehttp

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
)

// Watched wraps a DialContext so that a start over HTTP/1 is stamped when its
// first bytes have been written. Without it a start is stamped just before,
// and a process that is stopped in between may send it a window later than the
// limits believe. NewPool uses it; only who sets a DialContext needs it.
func Watched(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &watchedConn{Conn: c}, nil
	}
}

// watchedConn tells the attempt that uses it of its next write.
type watchedConn struct {
	net.Conn
	next atomic.Pointer[Wire]
}

func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written()
	return n, err
}

// ReadFrom lets the kernel copy files as far as Conn can.
func (c *watchedConn) ReadFrom(r io.Reader) (int64, error) {
	c.written() // the head is written before
	return io.Copy(c.Conn, r)
}

func (c *watchedConn) written() {
	if c.next.Load() == nil {
		return
	}
	if w := c.next.Swap(nil); w != nil {
		w.permit.Sent()
	}
}

// watched is the connection under c if it tells of its writes and carries one
// request at a time.
func watched(c net.Conn) *watchedConn {
	if isHTTP2(c) {
		return nil
	}
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	w, _ := c.(*watchedConn)
	return w
}
