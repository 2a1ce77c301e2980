package runner

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/quota"
)

// sum is what the journal knows a row by.
func sum(key [16]byte) uint64 { return binary.BigEndian.Uint64(key[:8]) }

// errUnfinished is the error of a row that was stopped before it had a result.
// It has no record, so a resume sends it again.
var errUnfinished = errors.New("unfinished")

// do sends one row and writes its record. Its permit is held until the record
// is written, so that a crash repeats no more than what was in flight.
func (r *run) do(row *input.Row, p *provider) (*record.Record, error) {
	ready := time.Now()
	rec := &record.Record{
		ID: row.ID, NumericID: row.NumericID, Key: sum(row.Key), Hash: sum(row.Hash), Line: int64(row.Line),
		Provider: p.name, Method: row.Method, At: ready, End: ready, Run: r.o.Run, Meta: row.Meta,
	}
	if r.files > 1 {
		rec.File = row.File
	}
	err := r.send(rec, row, p)
	if err != nil {
		r.forget(rec)
	}
	return rec, err
}

// forget books what was paid for a row that gets no record.
func (r *run) forget(rec *record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range rec.Costs {
		if c.True == 0 {
			continue
		}
		if r.unrecorded == nil {
			r.unrecorded = map[string]int64{}
		}
		r.unrecorded[c.Unit] += int64(c.True)
	}
}

func redirected(x *exchanged) string {
	switch x.status {
	case 301, 302, 303, 307, 308:
		return x.header.Get("Location")
	}
	return ""
}

// attempts makes the attempts of one request, at most so many, until one is
// final. Its permit is still held then. A nil permit means that the call was
// refused: the error is errUnfinished or elsewhere, or nil if the row has its
// record.
func (r *run) attempts(rec *record.Record, p *provider, tries *mete.Tries, q *request, most int) (*mete.Permit, *exchanged, error) {
	safe := p.spec.Idempotent || q.keyed || r.o.Idempotent
	max := min(p.spec.Gate.Retry.Attempts, most)
	before := rec.Waits // of earlier hops
	backoff := time.Duration(0)
	for {
		reserved, ok := r.reserve()
		if !ok {
			return nil, nil, errUnfinished
		}
		estimates, ok := r.reserveCosts(p.admit, rec.ID, q)
		if !ok {
			reserved.Release()
			return nil, nil, errUnfinished
		}
		permit, err := tries.Next()
		if err != nil {
			reserved.Release()
			release(estimates)
			return nil, nil, r.refused(rec, p, tries, err)
		}
		r.requested()
		r.inFlight.Add(1)
		x := r.exchange(p, permit, q, safe)
		r.inFlight.Add(-1)
		r.book(rec, p, permit, x, tries.Backoff()-backoff, tries.Attempts() > 1)
		backoff = tries.Backoff()
		r.settle(rec, p, permit, x, q, estimates)
		outcome := x.verdict.Outcome
		why := r.hopeless(p, q, x)
		if why != "" {
			r.parkProvider(p, why)
		}
		if tries.Attempts() >= max {
			outcome.Repeat = false
		}
		again := tries.Again(outcome)
		queued(rec, before, tries)
		if pause := p.pausedBy(outcome); p.spec.MaxPause > 0 && pause > p.spec.MaxPause {
			r.discard(x)
			if !again {
				permit.Release()
			}
			r.parkProvider(p, fmt.Sprintf("%s asks to stay away for %v, more than max_pause %v", p.name, pause.Round(time.Second), p.spec.MaxPause))
			return nil, nil, errUnfinished
		}
		if outcome.Terminal { // a resume sends the row again
			r.discard(x)
			permit.Release()
			return nil, nil, errUnfinished
		}
		if again {
			r.discard(x)
			continue
		}
		// Stopped before it was final, or while it was under way: not a result.
		if (outcome.Repeat && tries.Attempts() < max && p.admit.Err() != nil) || (x.attempt.Err != nil && r.hard.Err() != nil) {
			r.discard(x)
			permit.Release()
			return nil, nil, errUnfinished
		}
		return permit, x, nil
	}
}

// pausedBy is how long the provider stays closed after a throttle. Other
// outcomes are not asked about: a snapshot for each row would cost more than
// all the rest of its admission.
func (p *provider) pausedBy(o mete.Outcome) time.Duration {
	if !o.Throttled {
		return 0
	}
	return p.gate.Stats().Paused
}

// queued sets the waits of a record to those of the hops before and of tries.
func queued(rec *record.Record, before record.Waits, tries *mete.Tries) {
	w := tries.Waits()
	conn := rec.Waits.Conn
	rec.Waits = before
	rec.Waits.Conn = conn
	rec.Waits.Queue += w.Queue()
	rec.Waits.Limiter += w.Limit
	rec.Waits.Semaphore += w.Semaphore
	rec.Waits.Pause += w.Pause
	rec.Waits.Breaker += w.Breaker
	rec.Waits.Store += w.Store
	rec.Waits.Backoff += tries.Backoff()
	if w.Bound != "" {
		rec.Bound = w.Bound
	}
}

// refused ends a row that was not admitted.
func (r *run) refused(rec *record.Record, p *provider, tries *mete.Tries, err error) error {
	rej, ok := errors.AsType[*mete.Rejected](err)
	if !ok {
		return r.fail(rec, record.InvalidRow, "admission", err.Error())
	}
	switch rej.Reason {
	case mete.Canceled, mete.Draining, mete.Deadline:
		return errUnfinished
	case mete.Exhausted:
		r.parkProvider(p, p.name+" has no quota left, as it said before; when it has, go on with --resume")
		return errUnfinished
	case mete.Paused, mete.Budget, mete.Breaker:
		return &elsewhere{rej}
	case mete.Never:
		r.parkProvider(p, p.name+" is limited to nothing ("+rej.Bound+"): raise the limit")
		return errUnfinished
	}
	return r.fail(rec, record.InvalidRow, "admission", rej.Error())
}

// book notes an attempt in the record and in the figures of its provider.
// rec.End is the end of what is accounted for so far.
func (r *run) book(rec *record.Record, p *provider, permit *mete.Permit, x *exchanged, backoff time.Duration, retry bool) {
	w := permit.Waits()
	at := x.sent
	if at.IsZero() {
		at = x.begun
	}
	try := record.Try{
		N: len(rec.Tries) + 1, Provider: p.name, At: at, Status: x.status,
		Limiter: w.Limit, Semaphore: w.Semaphore, Pause: w.Pause, Conn: x.conn,
		// All that was not waiting, the work of this machine too, so that the
		// parts of a row add up to its total.
		Took:  max(x.end.Sub(rec.End)-w.Queue()-backoff-x.conn, 0),
		Error: x.verdict.kind,
	}
	rec.End = x.end
	if x.header != nil {
		try.RetryAfter, _ = quota.RetryAfter(x.header, x.end)
	}
	rec.Tries = append(rec.Tries, try)
	rec.Attempts = len(rec.Tries)
	rec.Waits.Conn += x.conn
	if !x.sent.IsZero() {
		p.started(x.sent)
		r.tally.started(x.sent)
	}
	if retry {
		p.retried()
		r.tally.retries.Add(1)
	}
	if x.verdict.Throttled {
		p.throttled()
		r.tally.throttled.Add(1)
	}
	r.tally.waited(w, x.conn)
}

// finish writes the record of a row that has its final answer.
func (r *run) finish(rec *record.Record, p *provider, x *exchanged) error {
	defer r.discard(x)
	last := rec.Tries[len(rec.Tries)-1]
	rec.Status = x.status
	rec.Headers = record.SelectHeaders(x.header, r.secretParameter)
	rec.BodyBytes, rec.Truncated = x.bytes, x.cut
	rec.Latency = max(x.end.Sub(x.begun)-x.conn, 0)
	if !x.first.IsZero() && !x.sent.IsZero() {
		rec.TTFB = x.first.Sub(x.sent)
	}
	rec.OK = x.verdict.rule != nil && x.verdict.rule.As == classify.OK
	if rec.Error == nil && last.Error != "" {
		rec.Error = &record.Error{Kind: last.Error, Phase: phase(x), Message: r.o.Mask(message(x)), Retryable: x.verdict.Repeat}
	}
	switch {
	case x.file != nil && x.attempt.Err == nil:
		name, err := x.file.Commit()
		if err != nil {
			rec.Error = &record.Error{Kind: record.IO, Phase: "body", Message: err.Error()}
			break
		}
		rec.BodyFile, rec.Encoding = name, record.InFile
	case x.body != nil && x.cut:
	case x.body != nil && x.attempt.Response != nil && r.o.Bodies == BodiesAuto:
		rec.Body = x.body.Bytes()
		if rec.Body == nil {
			rec.Body = []byte{}
		}
	}
	if r.o.Value != nil && rec.Error == nil {
		value, err := r.value(rec, x)
		if err != nil {
			rec.Error = &record.Error{Kind: record.Render, Phase: "jq", Message: r.o.Mask(err.Error())}
		}
		rec.Value = value
	}
	if !x.sent.IsZero() {
		p.latency.Record(rec.Latency)
		r.tally.latency.Record(rec.Latency)
	}
	return r.write(rec, p)
}

// value picks the value out of a body, wherever that is. Bodies in files are
// taken one at a time: they can be large.
func (r *run) value(rec *record.Record, x *exchanged) ([]byte, error) {
	switch {
	case rec.BodyFile != "":
		r.large.Lock()
		defer r.large.Unlock()
		body, err := os.ReadFile(filepath.Join(filepath.Dir(r.journal.Side()), filepath.FromSlash(rec.BodyFile)))
		if err != nil {
			return nil, err
		}
		return r.o.Value(body)
	case x.body == nil:
		return r.o.Value(nil)
	case x.bytes > int64(x.body.Len()):
		return nil, fmt.Errorf("the body of %d bytes is in no file: use -o FILE, and --body auto", x.bytes)
	}
	return r.o.Value(x.body.Bytes())
}

func phase(x *exchanged) string {
	switch {
	case x.attempt.Err == nil:
		return "response"
	case x.attempt.Response != nil:
		return "body"
	case x.sent.IsZero():
		return "connect"
	}
	return "request"
}

func message(x *exchanged) string {
	switch {
	case x.attempt.Err == nil && x.tooLarge:
		return fmt.Sprintf("the body is larger than %d MiB, and without -o there is no place for it", largest>>20)
	case x.verdict.rule != nil:
		return x.verdict.Err.Error()
	case x.attempt.Err == nil && x.status < 300:
		return fmt.Sprintf("%s, but the body says %s", statusText(x.status), x.verdict.kind)
	case x.attempt.Err == nil:
		return statusText(x.status)
	}
	return x.attempt.Err.Error()
}

// fail writes the record of a row that was not sent.
func (r *run) fail(rec *record.Record, kind record.Kind, phase, message string) error {
	rec.End = time.Now()
	rec.Error = &record.Error{Kind: kind, Phase: phase, Message: r.o.Mask(message)}
	return r.write(rec, nil)
}

// write appends the record and waits until it is written.
func (r *run) write(rec *record.Record, p *provider) error {
	if rec.DupOf == "" {
		rec.OK = rec.Error == nil && (rec.OK || rec.Status >= 200 && rec.Status < 300)
	}
	rec.Total = rec.End.Sub(rec.At)
	rec.Bound = bound(rec)
	line := r.buffers.Get().(*bytes.Buffer)
	defer r.buffers.Put(line)
	line.Reset()
	buf := r.o.Render(line.AvailableBuffer(), rec)
	batch, err := r.journal.Append(buf)
	line.Write(buf) // keep the larger buffer
	if err == nil {
		err = batch.Wait(r.flush)
	}
	if err != nil {
		return err
	}
	if p != nil {
		p.finished(rec.OK)
	}
	r.tally.finished(rec)
	if !rec.OK && r.o.Failures != nil {
		if _, err := r.o.Failures.Write(record.AppendJSON(nil, rec)); err != nil {
			return err
		}
	}
	r.judge(rec.OK)
	return nil
}

// bound is what a row waited for longest. rec.Bound names its limit.
func bound(rec *record.Record) string {
	w := rec.Waits
	name, most := "", time.Duration(0)
	if w.Limiter > 0 {
		name, most = rec.Bound, w.Limiter
	}
	for _, c := range []struct {
		name string
		d    time.Duration
	}{{"semaphore", w.Semaphore}, {"pause", w.Pause}, {"conn", w.Conn}, {"backoff", w.Backoff}} {
		if c.d > most {
			name, most = c.name, c.d
		}
	}
	return name
}
