// Package mete decides for every call to a remote API whether it may start
// now: exactly at the limits of its provider, never above them and hardly
// below.
//
// A [Gate] holds everything about one provider: how many calls may be in
// flight (Concurrency), how many may start per unit of time (Limits), how long
// the provider asked to stay away (a pause), and how failures are repeated
// (Retry). A call queues once and is admitted in one decision: a permit, and
// every limit's tokens, and no pause. So no permit sleeps while its holder
// waits for a token, and no token is spent on a call that waits for a permit.
//
//	geo, err := mete.New(mete.Config{
//		Name:        "geocoder",
//		Concurrency: 20,
//		Limits:      []mete.Limit{mete.Per(50, time.Second)},
//		Retry:       mete.Retry{Attempts: 4},
//	})
//	place, err := mete.Get(ctx, geo, mete.Call{}, lookup)
//
// Whatever blocks the head of the queue is the binding bound, and the time is
// booked on it: "semaphore", "pause" or "limit:<name>". [Gate.Stats] tells
// them apart.
//
// Package metehttp does the same for an http.Client, package batch for a
// stream of work. Packages semaphore and rate are complete on their own.
package mete

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/internal/meter"
	"github.com/metehq/mete/retry"
)

// Gate admits the calls to one provider. It is created once and shared by all
// that call the provider. Its methods may be called at any time from any
// goroutine; it has no goroutine of its own.
type Gate struct {
	name string

	mu       sync.Mutex
	cfg      atomic.Pointer[Config] // replaced as a whole, under the lock
	q        queue
	base     time.Time     // time is measured from here, by the monotonic clock
	shift    time.Duration // what it was put forward by, see now
	last     time.Duration // now, when it was last asked for
	unread   int           // successes since, that took it for their time
	timer    *time.Timer
	due      time.Duration // when timer fires
	budget   retry.Budget
	attempts int64
	retries  int64
	replays  int64
	misuse   int64
	leaks    int64
	lost     []*lease // leaked, not taken back yet
	refused  map[Reason]int64
	keep     *keeper   // durable state; nil without
	start    processor // when the gate was made
}

// New returns a gate for the provider that cfg describes. Its limits are clear
// unless cfg.State holds what was consumed before. The error is a mistake in
// cfg or a State folder that cannot be used.
func New(cfg Config) (*Gate, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gate{name: cfg.Name, base: time.Now(), start: readProcessor(), refused: map[Reason]int64{}}
	g.q.bound = noBound
	g.q.work.latest = meter.Later // not known
	g.q.blocked = make([]time.Duration, boundLimits)
	g.configure(0, cfg)
	if cfg.State != "" {
		keep, err := openKeeper(cfg.State, g)
		if err != nil {
			return nil, err
		}
		g.keep = keep
	}
	return g, nil
}

// Stamped reports whether starts count from the moment they go to the wire, so
// that Call.Wire and Permit.Sent are worth their cost: there is a limit.
func (g *Gate) Stamped() bool {
	c := g.cfg.Load()
	return len(c.Limits) > 0 || c.Adaptive != nil
}

// Config returns the configuration in force, to be changed and given to Update.
func (g *Gate) Config() Config { return *g.cfg.Load() }

// Name is the provider's name.
func (g *Gate) Name() string { return g.name }

// permits is how many permits there are now; 0 is no bound.
func (g *Gate) permits() int {
	if g.q.permits == math.MaxInt64 {
		return 0
	}
	return int(g.q.permits)
}

// now is the time since the gate was made. The caller holds the lock. A clock
// that runs backwards (a gate that is taken into a synctest bubble) goes on
// from where it was, so that everything in force stays so.
func (g *Gate) now() time.Duration {
	now := time.Since(g.base) + g.shift
	if now < g.last {
		if g.last-now > time.Second {
			g.shift += g.last - now
		}
		now = g.last
	}
	if g.lost != nil {
		g.reclaim(now)
	}
	g.last, g.unread = now, 0
	return now
}

// stepAndUnlock grants what can be granted, arms the timer, releases the lock
// and wakes those who were granted or refused.
func (g *Gate) stepAndUnlock(now time.Duration) {
	if g.q.idle() && g.timer == nil {
		g.mu.Unlock()
		return
	}
	g.q.book(now)
	// Who may start in the instant in which its patience ends does start.
	again := g.q.step(now)
	for g.q.expire(now) {
		again = g.q.step(now)
	}
	g.arm(now, again)
	list := g.q.wake
	g.q.wake = nil
	for w := list; w != nil; w = w.chain {
		if w.outcome == "" {
			g.started(w.flight, w.again)
		}
	}
	g.mu.Unlock()
	for w := list; w != nil; {
		next := w.chain
		w.chain = nil
		w.ready <- struct{}{}
		w = next
	}
}

// arm sees to it that tick runs at the time again. The timer is dropped when
// nothing waits: one kept from outside a synctest bubble would hang in it.
func (g *Gate) arm(now, again time.Duration) {
	if again == meter.Later || g.q.waiting == 0 {
		if g.timer != nil {
			g.timer.Stop()
			g.timer = nil
		}
		return
	}
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(again-now, g.tick)
	case g.due != again:
		g.timer.Reset(again - now)
	}
	g.due = again
}

func (g *Gate) tick() {
	g.mu.Lock()
	g.due = -1 // it has fired: arm must set it again
	now := g.now()
	g.q.book(now)
	g.stepAndUnlock(now)
}

// at is an instant as now tells it. The caller holds the lock.
func (g *Gate) at(t time.Time) time.Duration { return t.Sub(g.base) + g.shift }

// quiet reports whether nobody waits for what a permit gives back, so that it
// does not matter when that is. The caller holds the lock.
func (g *Gate) quiet() bool { return g.q.waiting == 0 && g.lost == nil && g.q.auto == nil }

// sampled reports whether the permit that ends is one of those whose time is
// taken in any case, for Stats.
func (g *Gate) sampled() bool { return g.attempts%16 == 0 }

// mostUnread is how many successes take one reading of the clock for their time.
const mostUnread = 4

// calm reports whether the time of a success is of no interest either, so that
// the clock, which costs as much as all the rest of a release, need not be
// read. A breaker's window takes the last time that was read since the start
// for it, as long as calls are so short that this makes no difference. Should
// these last long after all, a few successes at most count as older than the
// window, since the window begins between two readings only.
func (g *Gate) calm() bool {
	return g.unread < mostUnread && g.quiet() && !g.q.pause.probing && g.q.circuit.Coarse(g.q.work.latest) && g.cfg.Load().Observer == nil
}

// Pause closes the provider for d, for everybody: nothing starts until then,
// then one probe, and on its success the rate opens step by step. Of two
// pauses the later end counts; a d of 0 or less is none.
func (g *Gate) Pause(d time.Duration) {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.q.closeUntil(now, now+d, 0)
	g.stepAndUnlock(now)
	g.observePause(d)
}

// Close refuses all that wait and all that come with ErrDraining, and writes
// the durable state. Permits in use stay valid. It can be called twice.
func (g *Gate) Close() error {
	g.mu.Lock()
	now := g.now()
	g.q.book(now)
	g.q.closed = true
	g.q.sweep(func(*waiter) (Reason, time.Duration) { return Draining, 0 })
	keep := g.keep
	g.keep = nil
	g.stepAndUnlock(now)
	if keep != nil {
		return keep.close()
	}
	return nil
}
