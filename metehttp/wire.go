package metehttp

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// Wire watches one attempt from the gate to the connection. It stamps the
// start when the request is about to be written, and makes what net/http
// sends again by itself wait for the limits.
//
// Its methods may be called once the attempt has ended.
type Wire struct {
	permit *mete.Permit
	ctx    context.Context

	mu      sync.Mutex
	asked   time.Time
	conn    time.Duration
	sent    time.Time
	first   time.Time
	replays int
	reused  bool
}

// Watch returns a context whose request is watched. It may be called once.
func (w *Wire) Watch(ctx context.Context, permit *mete.Permit) context.Context {
	w.permit, w.ctx = permit, ctx
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              w.getConn,
		GotConn:              w.gotConn,
		GotFirstResponseByte: w.firstByte,
	})
}

func (w *Wire) getConn(string) {
	w.mu.Lock()
	replay := !w.sent.IsZero()
	if replay {
		w.replays++
	}
	w.mu.Unlock()
	if replay {
		// The connection was lost and the request is about to be sent again.
		// If it is not admitted, its context has ended and nothing is sent.
		_ = w.permit.Replay(w.ctx)
	}
	w.mu.Lock()
	w.asked = time.Now()
	w.mu.Unlock()
}

func (w *Wire) gotConn(info httptrace.GotConnInfo) {
	now := time.Now()
	w.mu.Lock()
	w.conn += now.Sub(w.asked)
	w.sent, w.reused = now, info.Reused
	w.mu.Unlock()
	w.permit.Sent()
}

func (w *Wire) firstByte() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = time.Now()
}

// Conn is how long the attempt waited for a connection, with name look-up and
// handshakes.
func (w *Wire) Conn() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn
}

// Sent is when the request went to the wire; zero if it did not.
func (w *Wire) Sent() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// FirstByte is when the response began; zero if it did not.
func (w *Wire) FirstByte() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// Replays is how many times net/http sent the request again by itself.
func (w *Wire) Replays() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replays
}
