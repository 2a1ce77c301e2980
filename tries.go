package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/retry"
)

// Tries makes the attempts of one call, one after the other: each is admitted
// on its own and pays on its own, and no permit is held between them unless
// Retry.KeepPermit says so. Do, Get and package metehttp are built on it.
//
//	t := gate.Tries(ctx, call)
//	for {
//		permit, err := t.Next()
//		if err != nil {
//			return err
//		}
//		outcome := attempt(permit)
//		if !t.Again(outcome) {
//			permit.Release()
//			return outcome.Err
//		}
//	}
type Tries struct {
	gate    *Gate
	ctx     context.Context
	cancel  context.CancelFunc // of Config.Total; may be nil
	call    Call
	n       int
	born    time.Duration
	delay   time.Duration
	permit  *Permit
	lane    *lane // these three of the last attempt, whose permit may
	weight  int64 // be given back before its outcome is told
	granted time.Duration
	attempt context.Context
	kept    *Permit // held during the back-off
	last    error
	refusal *Rejected
	waits   Waits
	backoff time.Duration
	limit   int // of attempts, below the gate's own; 0 is none
}

// Tries begins a call. Nothing is waited for or charged before Next.
func (g *Gate) Tries(ctx context.Context, call Call) *Tries {
	// Small enough to be inlined, so that it can live with its caller.
	t := new(Tries)
	t.begin(g, ctx, call)
	return t
}

func (t *Tries) begin(g *Gate, ctx context.Context, call Call) {
	t.gate, t.ctx, t.call = g, ctx, call
	if d := g.cfg.Load().Total; d > 0 {
		t.ctx, t.cancel = context.WithTimeout(ctx, d)
	}
}

// Next waits out the back-off, then for admission. The permit must be released
// unless Again returned true for it. The errors are those of Gate.Acquire;
// a failure after the first attempt wraps the last outcome's Err too.
func (t *Tries) Next() (*Permit, error) { return t.next(&t.call) }

// next is Next for a call that lies with its caller.
func (t *Tries) next(call *Call) (*Permit, error) {
	g := t.gate
	var p *Permit
	var timed *timedAttempt
	if g.cfg.Load().Timeout > 0 {
		timed = &timedAttempt{attempt: attempt{Permit{gate: g}, t.ctx}}
		p, t.attempt = &timed.permit, timed
	} else {
		a := &attempt{Permit{gate: g}, t.ctx}
		p, t.attempt = &a.permit, a
	}
	if err := t.admit(call, p); err != nil {
		if t.cancel != nil {
			t.cancel()
		}
		return nil, err
	}
	f := p.flight
	f.tried, f.whole = true, t.cancel
	t.lane, t.weight, t.granted = f.lane, f.weight, f.granted
	if timed != nil {
		f.timed, timed.deadline = timed, f.deadline
	}
	if t.n == 0 {
		t.born = f.granted
	}
	if f.waits != nil {
		if t.n == 0 {
			t.born -= f.waits.Queue()
		}
		t.waits = t.waits.add(*f.waits)
	}
	t.n++
	t.permit = p
	g.admitted(p, t.n)
	return p, nil
}

func (t *Tries) admit(call *Call, p *Permit) error {
	g := t.gate
	if t.n == 0 {
		return g.admit(t.ctx, call, p, nil)
	}
	t.stayAway()
	if t.kept == nil {
		return g.admit(t.ctx, call, p, t)
	}
	defer t.drop()
	if err := g.admit(t.ctx, call, p, t); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if kept := t.kept.live(); kept != nil {
		g.q.handOver(g.now(), kept, p.flight)
		t.kept.drop()
	}
	t.kept = nil
	return nil
}

// drop gives back the permit that was kept, if no attempt got it.
func (t *Tries) drop() {
	t.kept.Release()
	t.kept = nil
}

// stayAway waits out the back-off, unless the call ends before.
func (t *Tries) stayAway() {
	if t.delay <= 0 {
		return
	}
	start := time.Now()
	timer := time.NewTimer(t.delay)
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		timer.Stop()
	}
	d := time.Since(start)
	t.backoff += d
	t.delay = 0
	t.gate.mu.Lock()
	t.gate.q.work.backoff += d
	t.gate.mu.Unlock()
}

// Context is the context of the attempt that Next began. It carries the permit
// and ends with the attempt's timeout, and if there is one, with the release.
func (t *Tries) Context() context.Context { return t.attempt }

// Attempts is how many attempts were admitted so far.
func (t *Tries) Attempts() int { return t.n }

// Waits is how long all attempts so far queued.
func (t *Tries) Waits() Waits { return t.waits }

// Backoff is how long the call stayed away between its attempts.
func (t *Tries) Backoff() time.Duration { return t.backoff }

// Refusal is why there is no further attempt although the call may be
// repeated: the pause, the deadline or the budget does not allow it. It is nil
// if the attempts are used up or the outcome is final.
func (t *Tries) Refusal() error {
	if t.refusal == nil {
		return nil
	}
	return t.refusal
}

// Again tells the outcome of the attempt that Next began, which teaches the
// gate, and reports whether there is to be another. If so the permit has been
// given back, and Next waits until it is time. If not the permit is still
// held: release it when the call is done.
func (t *Tries) Again(o Outcome) bool { return t.ended(&t.call, &o, false) }

// ended is Again that also releases the permit after the last attempt if asked
// to, under the same lock. Outcomes go by pointer from here on: to copy one
// that was only just written costs more than to look at it.
func (t *Tries) ended(call *Call, o *Outcome, release bool) bool {
	g, p := t.gate, t.permit
	t.last = o.Err
	g.mu.Lock()
	f := p.live()
	held := f != nil
	if !held { // its user has given the permit back
		f = &flight{lane: t.lane, weight: t.weight, granted: t.granted}
	}
	now, timed := g.last, o.teaches() || !g.calm() || !f.clear() || g.sampled()
	if timed {
		now = g.now()
	} else {
		g.unread++
	}
	g.q.book(now)
	at, closed := now, g.q.pause.until
	switch {
	case o.Terminal:
		g.q.stop(now, o)
	case o.Throttled:
		at = g.q.throttled(now, f, o.RetryAfter, o.Hinted)
	case o.Answered:
		g.q.answered(now, f)
	}
	switch {
	case o.Quotas != nil || o.Answered && f.looks && len(g.q.learned.known) > 0:
		g.q.learn(now, f, o)
	case o.Answered:
		g.q.unread(f)
	}
	g.q.ended(now, f, result(o, t.ctx))
	if f.sample != nil {
		f.sample.told(fate(o, t.ctx.Err() != nil))
	}
	again := o.Repeat && t.decide(now, &at, call, o)
	if again {
		g.retries++
	}
	over := held && (again || release)
	if over && timed {
		g.q.work.end(now-f.granted, false)
	}
	lane, granted, attempt := f.lane.Name, f.granted, f.timed
	switch {
	case over && again && g.cfg.Load().Retry.KeepPermit:
		t.kept = p
		g.q.keep(now, f)
	case over:
		g.q.release(now, f, false)
		p.drop()
	}
	paused := time.Duration(0)
	if g.q.pause.until > closed {
		paused = g.q.pause.until - now
	}
	g.stepAndUnlock(now)
	if over && attempt != nil {
		attempt.finish()
	}
	if obs := g.cfg.Load().Observer; obs != nil {
		returned := false
		defer func() {
			if !returned { // it panics, and there is no next attempt
				t.drop()
			}
		}()
		g.observePause(paused)
		if t.refusal != nil {
			g.observeRefusal(t.refusal)
		}
		if obs.Ended != nil {
			obs.Ended(Ending{Gate: g.name, Lane: lane, Attempt: t.n, Outcome: *o, Held: now - granted, Again: again})
		}
		returned = true
	}
	return again
}

// most is how many attempts there may be.
func (t *Tries) most(attempts int) int {
	if t.limit > 0 {
		return min(attempts, t.limit)
	}
	return attempts
}

// decide says whether there is another attempt of one that may be repeated, and
// sets the back-off.
func (t *Tries) decide(now time.Duration, at *time.Duration, call *Call, o *Outcome) bool {
	g := t.gate
	r := &g.cfg.Load().Retry
	if o.Err == nil && !o.Throttled || t.n >= t.most(r.Attempts) || t.ctx.Err() != nil {
		return false
	}
	refuse := func(reason Reason, bound string) bool {
		t.refusal = &Rejected{Gate: g.name, Reason: reason, Bound: bound, RetryAfter: *at - now, Attempts: t.n, Last: o.Err}
		g.figures(t.refusal)
		g.refused[reason]++
		return false
	}
	t.delay = 0
	if stopped := g.q.pause.stopped; stopped > now {
		*at = stopped
		return refuse(Exhausted, boundNames[boundPause])
	}
	bound := boundNames[boundPause]
	if !o.Throttled {
		bound = "backoff"
		t.delay = r.Delay
		if t.delay == 0 {
			t.delay = retry.Backoff{Base: r.Base, Max: r.Max}.Delay(t.n)
		}
		if o.Hinted {
			t.delay = max(t.delay, o.RetryAfter)
		}
		*at = now + t.delay
	}
	if deadline, ok := t.ctx.Deadline(); ok && *at >= g.at(deadline) {
		return refuse(Deadline, bound)
	}
	wait := g.cfg.Load().maxWait()
	if call.Patient {
		wait = 0
	}
	if longest := call.MaxPause; longest > 0 && (wait <= 0 || longest < wait) {
		wait = longest
	}
	if (o.Throttled || o.Hinted) && wait > 0 {
		asked := *at - now
		if o.Throttled {
			asked -= g.q.pause.jitter
		}
		if asked > wait {
			return refuse(Paused, bound)
		}
	}
	if !o.Throttled && !o.Free && !g.budget.Again() {
		*at = now
		return refuse(Budget, "")
	}
	return true
}
