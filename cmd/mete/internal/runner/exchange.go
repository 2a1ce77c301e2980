package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cost"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/metehttp"
	"github.com/metehq/mete/quota"
)

// Bodies says what becomes of response bodies.
type Bodies string

// The choices of Bodies.
const (
	BodiesAuto Bodies = "auto" // in the record up to 1 MiB, else in a file
	BodiesFile Bodies = "file" // always in a file
	BodiesNone Bodies = "none" // only counted
)

const (
	inline  = 1 << 20  // largest body in a record
	largest = 32 << 20 // largest body where there is no place for files
)

// exchanged is what one attempt brought.
type exchanged struct {
	attempt  metehttp.Attempt
	verdict  verdict
	status   int
	header   http.Header
	body     *bytes.Buffer // to be given back
	bytes    int64
	file     *journal.Body
	cut      bool
	tooLarge bool
	begun    time.Time
	sent     time.Time
	first    time.Time
	end      time.Time
	conn     time.Duration
	priced   *cost.Response // what tells its cost; nil if nothing does
}

// exchange makes one attempt, reads its response to the end and judges it.
func (r *run) exchange(p *provider, permit *mete.Permit, q *request, safe bool) *exchanged {
	x := &exchanged{begun: time.Now()}
	defer r.conclude(p, x)
	timeout := p.spec.Timeout.Attempt
	if q.timeout > 0 {
		timeout = q.timeout
	}
	ctx, cancel := context.WithCancelCause(r.hard)
	defer cancel(nil)
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { cancel(errAttempt) })
		defer timer.Stop()
	}
	wire := &metehttp.Wire{}
	req, err := q.http(wire.Watch(ctx, permit), safe)
	if err != nil {
		x.attempt = metehttp.Attempt{Err: err, Request: &http.Request{Method: q.method}}
		x.end = time.Now()
		return x
	}
	resp, err := p.client.RoundTrip(req)
	x.attempt = metehttp.Attempt{Request: req, Response: resp, Err: err, Wire: wire, Replayable: true, Idempotent: safe, Provider: p.spec.Preset, SkipQuotas: !permit.WantsQuotas()}
	if err == nil {
		x.status, x.header = resp.StatusCode, resp.Header
		body := io.Reader(resp.Body)
		if x.priced = p.spec.response(x); p.spec.needsBody() {
			body = io.TeeReader(body, x.priced)
		}
		x.attempt.Err = r.read(x, body, p.spec.Timeout.Idle, cancel)
		resp.Body.Close()
		if x.body != nil {
			x.attempt.Body = beginning(x.header, x.body.Bytes())
		}
	}
	if x.attempt.Err != nil && r.hard.Err() == nil && ctx.Err() != nil {
		x.attempt.Err = context.Cause(ctx) // whatever net/http made of it
	}
	if !wire.Sent().IsZero() {
		permit.Sent() // whatever became of it, it may have been written
	}
	x.end = time.Now()
	x.sent, x.first, x.conn = wire.Sent(), wire.FirstByte(), wire.Conn()
	if r.hard.Err() != nil {
		x.attempt.Replayable = false
	}
	return x
}

// timedOut is a net.Error: a time-out of ours counts like one of the network.
type timedOut string

func (e timedOut) Error() string { return string(e) }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

const (
	errAttempt = timedOut("the attempt took too long")
	errIdle    = timedOut("the response stood still for too long")
)

// read takes the response's body: into memory as far as it fits a record, else
// into a file, if the output has a place for one.
func (r *run) read(x *exchanged, body io.Reader, idle time.Duration, cancel context.CancelCauseFunc) error {
	if idle > 0 {
		timer := time.AfterFunc(idle, func() { cancel(errIdle) })
		defer timer.Stop()
		body = &watched{body, timer, idle}
	}
	x.body = r.buffers.Get().(*bytes.Buffer)
	x.body.Reset()
	// Even of a body that is not kept, the beginning says what the answer means.
	most := int64(quota.MaxBody + 1)
	if r.o.Bodies == BodiesAuto || r.o.Value != nil && r.o.Bodies == BodiesNone {
		most = inline + 1
	}
	n, err := x.body.ReadFrom(io.LimitReader(body, most))
	x.bytes = n
	switch {
	case err != nil, r.o.Bodies == BodiesAuto && n < most:
		return err
	case r.o.Bodies == BodiesNone:
		n, err = io.Copy(io.Discard, body)
		x.bytes += n
		return err
	}
	file, err := r.journal.NewBody()
	if errors.Is(err, journal.ErrNoBodies) {
		n, err := io.Copy(io.Discard, io.LimitReader(body, largest+1-x.bytes))
		x.bytes += n
		x.cut, x.tooLarge = true, x.bytes > largest
		return err
	}
	if err != nil {
		return &localError{err}
	}
	x.file = file
	out := &local{w: file}
	if _, err := out.Write(x.body.Bytes()); err != nil {
		return err
	}
	n, err = io.Copy(out, body)
	x.bytes += n
	return err
}

// watched stops a body that stands still.
type watched struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	return w.Reader.Read(p)
}

// localError is a failure of this machine's files, not of the provider.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

type local struct{ w io.Writer }

func (l *local) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// discard frees what an attempt holds that is not the row's last.
func (r *run) discard(x *exchanged) {
	if x.file != nil {
		_ = x.file.Discard()
		x.file = nil
	}
	if x.body != nil {
		r.buffers.Put(x.body)
		x.body = nil
	}
}
