package mete

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/quota"
	"github.com/metehq/mete/retry"
)

// Outcome is what an attempt taught about the provider and about itself.
type Outcome struct {
	// Err is why the attempt failed; nil is success.
	Err error
	// Answered says that the provider took the call and did not push back.
	// It ends a pause for good.
	Answered bool
	// Throttled says that the provider pushed back because of load or quota,
	// and RetryAfter how long it asks to stay away, if Hinted. A hint without
	// a throttle delays only this call.
	Throttled  bool
	RetryAfter time.Duration
	Hinted     bool
	// Repeat says that the call may safely be made again.
	Repeat bool
	// Free is a failure outside the retry budget: nothing was sent, or the
	// provider refused before it did anything.
	Free bool
	// Terminal says that the provider's quota is used up for long (the money is
	// spent, the day's contingent is gone), for everybody who uses this gate.
	// It stops the provider: see ErrExhausted. What concerns only this request
	// is not Terminal, just not to be repeated.
	Terminal bool
	// Quotas are what the response shows of the provider's quotas. Config.Learn
	// says what becomes of them.
	Quotas []quota.Quota
}

// teaches reports whether there is more in an outcome than that the provider
// works.
func (o *Outcome) teaches() bool { return o.Err != nil || o.Throttled || o.Quotas != nil }

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
	attempt *attempt
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
func (t *Tries) Next() (*Permit, error) {
	g := t.gate
	a := &attempt{parent: t.ctx}
	p := &a.permit
	p.attempt = a
	if t.cancel != nil {
		p.extra = &extra{whole: t.cancel}
	}
	var again *Tries
	if t.n > 0 {
		again = t
		t.stayAway()
	}
	if t.kept != nil {
		p.lane = g.holders()
		defer t.drop()
	}
	if err := g.admit(t.ctx, &t.call, p, again); err != nil {
		if t.cancel != nil {
			t.cancel()
		}
		return nil, err
	}
	if t.kept != nil {
		g.mu.Lock()
		g.q.handOver(g.now(), t.kept, p)
		t.kept = nil
		g.mu.Unlock()
	}
	if t.n == 0 {
		t.born = p.granted
	}
	if p.waits != nil {
		if t.n == 0 {
			t.born -= p.waits.Queue()
		}
		t.waits = t.waits.add(*p.waits)
	}
	t.n++
	t.permit, t.attempt = p, a
	g.admitted(p, t.n)
	return p, nil
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

func (g *Gate) holders() *lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.q.lanes[len(g.q.lanes)-1]
}

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
func (t *Tries) Again(o Outcome) bool { return t.ended(&o, false) }

// ended is Again that also releases the permit after the last attempt if asked
// to, under the same lock. Outcomes go by pointer from here on: to copy one
// that was only just written costs more than to look at it.
func (t *Tries) ended(o *Outcome, release bool) bool {
	g, p := t.gate, t.permit
	t.last = o.Err
	g.mu.Lock()
	now, timed := g.last, o.teaches() || !g.calm() || !p.clear() || g.sampled()
	if timed {
		now = g.now()
	}
	g.q.book(now)
	at, closed := now, g.q.pause.until
	switch {
	case o.Terminal:
		g.q.stop(now, o)
	case o.Throttled:
		at = g.q.throttled(now, p, o.RetryAfter, o.Hinted)
	case o.Answered:
		g.q.answered(now, p)
	}
	switch {
	case o.Quotas != nil || o.Answered && p.looks && len(g.q.learned.known) > 0:
		g.q.learn(now, p, o)
	case o.Answered:
		g.q.unread(p)
	}
	g.q.ended(now, p, result(o, t.ctx))
	p.sample().told(fate(o, t.ctx.Err() != nil))
	again := t.decide(now, &at, o)
	if timed && (again || release) {
		g.q.work.end(now-p.granted, false)
	}
	if again {
		g.retries++
		if g.cfg.Load().Retry.KeepPermit {
			t.kept = p
			g.q.keep(now, p)
		} else {
			g.q.release(now, p, false)
		}
	} else if release {
		g.q.release(now, p, false)
	}
	paused := time.Duration(0)
	if g.q.pause.until > closed {
		paused = g.q.pause.until - now
	}
	g.stepAndUnlock(now)
	if again || release {
		t.attempt.finish()
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
			obs.Ended(Ending{Gate: g.name, Lane: p.lane.Name, Attempt: t.n, Outcome: *o, Held: now - p.granted, Again: again})
		}
		returned = true
	}
	return again
}

// result is what an outcome says about whether the provider works. A throttle
// teaches a rate, and the end of the caller's context nothing.
func result(o *Outcome, ctx context.Context) breaker.Result {
	switch {
	case o.Answered || o.Err == nil && !o.Throttled:
		return breaker.Success
	case o.Throttled || ctx.Err() != nil || refusal(o.Err):
		return breaker.Ignored
	}
	return breaker.Failure
}

// refusal reports whether an error came from a gate and not from a provider.
func refusal(err error) bool {
	_, rejected := errors.AsType[*Rejected](err)
	return rejected || errors.Is(err, ErrNested) || errors.Is(err, ErrInvalidCall)
}

// most is how many attempts there may be.
func (t *Tries) most(attempts int) int {
	if t.limit > 0 {
		return min(attempts, t.limit)
	}
	return attempts
}

// decide says whether there is another attempt, and sets the back-off.
func (t *Tries) decide(now time.Duration, at *time.Duration, o *Outcome) bool {
	g := t.gate
	r := g.cfg.Load().Retry
	if o.Err == nil && !o.Throttled || !o.Repeat || t.n >= t.most(r.Attempts) || t.ctx.Err() != nil {
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
	if t.call.Patient {
		wait = 0
	}
	if longest := t.call.MaxPause; longest > 0 && (wait <= 0 || longest < wait) {
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

// Do calls fn as soon as the gate admits it, and again after a failure as the
// gate's Retry says. It blocks as Acquire does and then for as long as fn
// runs. The context that fn gets ends with the attempt's timeout.
//
// Any error of fn is repeated, save one marked with Permanent, a refusal by
// another gate, and the end of ctx. An error marked with After pauses the
// provider for everybody. The permit is given back however fn ends: by return,
// panic or Goexit. Do returns the last error of fn, or a *Rejected.
//
// With one limit an admission costs one allocation, with more of them two, and
// some more if there is an attempt timeout and fn asks for ctx.Done.
func Do(ctx context.Context, g *Gate, call Call, fn func(context.Context) error) error {
	_, err := do(ctx, g, call, 0, fn)
	return unmarked(err)
}

// Get is Do for a function with a result. After an error the result is the
// last one that fn returned.
func Get[T any](ctx context.Context, g *Gate, call Call, fn func(context.Context) (T, error)) (T, error) {
	v, _, err := get(ctx, g, call, 0, fn)
	return v, unmarked(err)
}

// unmarked takes the mark of Permanent off an error.
func unmarked(err error) error {
	if e, ok := err.(*permanent); ok {
		return e.error
	}
	return err
}

// get is do for a function with a result.
func get[T any](ctx context.Context, g *Gate, call Call, limit int, fn func(context.Context) (T, error)) (v T, attempts int, err error) {
	attempts, err = do(ctx, g, call, limit, func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	})
	return v, attempts, err
}

// do is Do with at most limit attempts, if that is above 0. It tells how many
// there were.
func do(ctx context.Context, g *Gate, call Call, limit int, fn func(context.Context) error) (attempts int, err error) {
	if d := g.cfg.Load().Total; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	t := Tries{gate: g, ctx: ctx, call: call, limit: limit}
	running := false
	defer func() {
		if running { // fn has not returned
			t.permit.Release()
		}
	}()
	for {
		if _, err := t.Next(); err != nil {
			return t.n, err
		}
		running = true
		err = fn(t.attempt)
		running = false
		o := Outcome{Answered: true}
		if err != nil {
			o = outcome(ctx, err)
		}
		if t.ended(&o, true) {
			continue
		}
		if t.refusal != nil {
			err = t.refusal
		}
		return t.n, err
	}
}

// outcome reads the error of a plain function that has failed.
func outcome(ctx context.Context, err error) Outcome {
	if t, ok := errors.AsType[*Throttled](err); ok {
		return Outcome{Err: err, Throttled: true, RetryAfter: t.RetryAfter, Hinted: t.RetryAfter > 0, Repeat: !t.Terminal, Free: true, Terminal: t.Terminal}
	}
	if _, ok := errors.AsType[*permanent](err); ok {
		return Outcome{Err: err, Answered: true}
	}
	if refusal(err) || ctx.Err() != nil {
		return Outcome{Err: err}
	}
	return Outcome{Err: err, Repeat: true, Free: !Sent(err)}
}
