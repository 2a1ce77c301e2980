package metehttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/quota"
)

// ErrBodyIdle is the error of a body that stood still for longer than BodyIdle.
// It is a time-out: net.Error says so.
var ErrBodyIdle error = idleError{}

type idleError struct{}

func (idleError) Error() string   { return "metehttp: the response's body stands still" }
func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return true }

// hold ties the permit to the response's body: it is released at the end of
// the body, at Close, at a read error, or when the request's context ends,
// whichever comes first. A response without a body releases it at once. The
// context is the attempt's, so its timeout counts too.
func (x *exchange) hold(resp *http.Response, permit *mete.Permit, idle time.Duration) {
	none := resp.Body == nil || resp.Body == http.NoBody || x.request.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	if none {
		permit.Release()
		return
	}
	b := &x.body
	b.rc, b.permit = resp.Body, permit
	if ctx := x.request.Context(); ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, b.release)
	}
	// A connection that was upgraded is written to as well, and may be silent.
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = &duplex{body: b, Writer: w}
		return
	}
	if idle > 0 {
		b.watch = &idleWatch{rc: b.rc, idle: idle}
	}
	resp.Body = b
}

type body struct {
	rc       io.ReadCloser
	permit   *mete.Permit
	stop     func() bool
	watch    *idleWatch // nil without BodyIdle
	released atomic.Bool
}

type duplex struct {
	*body
	io.Writer
}

func (b *body) release() {
	if b.released.CompareAndSwap(false, true) {
		b.permit.Release()
	}
}

func (b *body) end() {
	if b.stop != nil {
		b.stop()
	}
	b.release()
}

func (b *body) Read(p []byte) (int, error) {
	if b.watch != nil {
		b.watch.arm()
	}
	n, err := b.rc.Read(p)
	if b.watch != nil && b.watch.disarm() && err != nil && !errors.Is(err, io.EOF) {
		err = ErrBodyIdle
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close releases the permit after the inner Close has returned: on HTTP/2 that
// may take a while (golang/go#48908).
func (b *body) Close() error {
	defer b.end()
	return b.rc.Close()
}

// idleWatch closes a body that stands still while it is read.
type idleWatch struct {
	rc    io.Closer
	idle  time.Duration
	mu    sync.Mutex
	timer *time.Timer
	stood bool
}

func (w *idleWatch) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.idle, w.standstill)
	} else {
		w.timer.Reset(w.idle)
	}
}

func (w *idleWatch) disarm() (stood bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	return w.stood
}

func (w *idleWatch) standstill() {
	w.mu.Lock()
	w.stood = true
	w.mu.Unlock()
	w.rc.Close()
}

// peekTime is how long the beginning of an error's body is waited for.
const peekTime = 5 * time.Second

// peek reads the beginning of a body, since many providers say only there what
// is wrong, and puts it back. If that was the whole body, the connection is
// free again and whole is true. What does not come within patience, if that is
// above 0, is cut off.
func peek(resp *http.Response, patience time.Duration) (head []byte, whole bool) {
	rc := resp.Body
	if rc == nil || rc == http.NoBody {
		return nil, false
	}
	cut := func() bool { return false }
	if patience > 0 {
		timer := time.AfterFunc(patience, func() { rc.Close() })
		cut = func() bool { return !timer.Stop() }
	}
	// One byte more tells a body of just this size from a longer one.
	head, err := io.ReadAll(io.LimitReader(rc, quota.MaxBody+1))
	if cut() && err != nil {
		err = ErrBodyIdle
	}
	p := &peeked{Reader: bytes.NewReader(head), rest: rc}
	switch {
	case err != nil:
		p.rest = failed{err}
	case len(head) <= quota.MaxBody:
		p.rest = http.NoBody
	}
	if p.rest != rc {
		rc.Close()
		whole = true
	}
	resp.Body = p
	return head[:min(len(head), quota.MaxBody)], whole
}

// isJSON reports whether a response is one JSON text, and not a stream of them.
func isJSON(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json")
}

type peeked struct {
	*bytes.Reader
	rest io.ReadCloser
}

func (p *peeked) Read(b []byte) (int, error) {
	if p.Len() > 0 {
		return p.Reader.Read(b)
	}
	return p.rest.Read(b)
}

func (p *peeked) Close() error { return p.rest.Close() }

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
func (f failed) Close() error             { return nil }
