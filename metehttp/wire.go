package metehttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// Wire watches one attempt from the gate to the connection. It stamps the
// start when the request is about to be written, and makes what net/http
// sends again by itself wait for the limits. If they do not admit that before
// the attempt's context ends, nothing is sent.
//
// Its methods may be called once the attempt has ended.
type Wire struct {
	permit *mete.Permit
	ctx    context.Context
	trace  httptrace.ClientTrace

	mu      sync.Mutex
	times   *times   // nil if nobody will ask for them
	used    net.Conn // the last one
	replays int32
	asking  bool // for a connection
	asked   bool // ever
	gone    bool // to the wire
	paid    bool // for the replay that comes next
	refused bool // to replay
}

// times are those of an attempt that is watched. To read the clock costs more
// than all the rest.
type times struct {
	asks, sent, first time.Time
	conn              time.Duration
}

// Watch returns a context whose request is watched. It may be called once.
func (w *Wire) Watch(ctx context.Context, permit *mete.Permit) context.Context {
	w.times = &times{}
	w.trace.GotFirstResponseByte = w.firstByte
	return w.stamp(ctx, permit)
}

// stamp is Watch without the times.
func (w *Wire) stamp(ctx context.Context, permit *mete.Permit) context.Context {
	w.permit, w.ctx = permit, ctx
	w.trace.GetConn = w.getConn
	w.trace.GotConn = w.gotConn
	return httptrace.WithClientTrace(ctx, &w.trace)
}

// getConn lets a replay wait before it occupies a connection, if that is surely
// HTTP/1. HTTP/2 calls it under the lock of its pool, where waiting would stop
// everybody, or not at all: there gotConn is the place.
func (w *Wire) getConn(string) {
	w.mu.Lock()
	if _, secure := w.used.(*tls.Conn); secure && w.replay() && !isHTTP2(w.used) {
		w.mu.Unlock()
		w.pay()
		w.mu.Lock()
	}
	w.asking, w.asked = true, true
	if w.times != nil {
		w.times.asks = time.Now()
	}
	w.mu.Unlock()
}

// replay reports whether the request was sent before and is not paid again.
func (w *Wire) replay() bool { return w.gone && !w.paid }

func (w *Wire) gotConn(info httptrace.GotConnInfo) {
	w.mu.Lock()
	if w.asking && w.times != nil {
		w.times.conn += time.Since(w.times.asks)
	}
	w.asking = false
	if w.replay() {
		w.mu.Unlock()
		w.pay()
		w.mu.Lock()
	}
	if w.refused {
		w.mu.Unlock()
		// HTTP/2 looks at the context before it writes, HTTP/1 does not.
		if !isHTTP2(info.Conn) {
			info.Conn.Close()
		}
		return
	}
	w.gone, w.paid, w.used = true, false, info.Conn
	if w.times != nil {
		w.times.sent = time.Now()
	}
	w.mu.Unlock()
	if c := watched(info.Conn); c != nil {
		c.next.Store(w) // counts once it is written
		return
	}
	w.permit.Sent()
}

// pay waits until the limits admit that the request is sent again.
func (w *Wire) pay() {
	w.permit.Sent() // if it was not written, it is charged all the same
	err := w.permit.Replay(w.ctx)
	if err != nil {
		// The hooks of net/http cannot refuse, but its context can. It ends:
		// there is no other reason to refuse a replay.
		<-w.ctx.Done()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paid, w.refused = true, err != nil
	if err == nil {
		w.replays++
	}
}

// isHTTP2 reports whether a connection surely speaks HTTP/2.
func isHTTP2(c net.Conn) bool {
	secure, ok := c.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}

func (w *Wire) firstByte() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.first = time.Now()
}

// Conn is how long the attempt waited for a connection, with name look-up and
// handshakes.
func (w *Wire) Conn() time.Duration { return w.read().conn }

// Sent is when the request went to the wire; zero if it did not.
func (w *Wire) Sent() time.Time { return w.read().sent }

// FirstByte is when the response began; zero if it did not.
func (w *Wire) FirstByte() time.Time { return w.read().first }

// read is the times so far.
func (w *Wire) read() (t times) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.times != nil {
		t = *w.times
	}
	return t
}

// Replays is how many times net/http sent the request again by itself.
func (w *Wire) Replays() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.replays)
}

// unsent reports whether the attempt asked for a connection and got none. A
// transport without the hooks of httptrace never asks.
func (w *Wire) unsent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked && !w.gone
}
