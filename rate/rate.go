// Package rate limits how much starts per unit of time, for programs that call
// something whose quota they must not pass.
//
// A [Limiter] keeps one limit. What a quota means differs between providers,
// so there are three models, plain structs given to [New]:
//
//   - [Window], never more than N in any window: what "50 per second" means
//     when nothing else is said;
//   - [Bucket], a token bucket with a burst, for providers that document one;
//   - [Calendar], N per calendar day or month.
//
// [Limiter.Allow] asks without waiting, [Limiter.Wait] waits in line,
// [Limiter.Take] waits too and gives a [Grant] whose true cost is settled
// later. A [Keyed] is a bucket for each of up to millions of keys.
//
//	limiter, err := rate.New(rate.Window{N: 50, Per: time.Second})
//	...
//	if err := limiter.Wait(ctx, 1); err != nil {
//		return err
//	}
//
// # Order
//
// The line is first in, first out, whatever is asked for: nobody passes the
// one at its head. There are no reservations: a caller is charged when it is
// granted, so one who gives up has cost nothing, and those behind it move up.
//
// # Cost
//
// Allow, Wait and Take allocate nothing when they are admitted at once, and
// cost one reading of the clock and one mutex; Allow and Wait of a [Bucket] of
// whole nanoseconds per unit need no mutex while nobody waits and no [Grant] is
// unsettled. An Allow that is refused for as long as nothing can change writes
// no shared memory. A blocked caller
// costs at most two allocations, about 200 bytes. There is no goroutine, and
// one timer while somebody waits.
package rate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/internal/meter"
)

// Limiter keeps one limit. Make one with [New]; it must not be copied. Its
// methods may be called at any time from any goroutine.
type Limiter struct {
	base time.Time // time is measured from here, by the monotonic clock
	tick func()    // onTick, bound once

	quick  atomic.Pointer[quick] // nil if the limit cannot have one
	denied denial

	mu      sync.Mutex
	meter   meter.Meter
	limit   Limit
	wall    bool // the meter goes by the wall clock
	last    time.Duration
	line    line
	spare   *waiter       // one that was granted, to be used again
	timer   *time.Timer   // nil while nobody waits
	due     time.Duration // when it fires
	scratch meter.Charge
}

// New returns a limiter of which nothing is used yet. The error wraps
// [ErrInvalid].
func New(limit Limit) (*Limiter, error) {
	if limit == nil {
		return nil, fmt.Errorf("%w: no limit", ErrInvalid)
	}
	if err := limit.check(); err != nil {
		return nil, err
	}
	l := &Limiter{base: time.Now(), limit: limit, meter: limit.meter()}
	l.tick = l.onTick
	_, l.wall = limit.(Calendar)
	l.quick.Store(newQuick(l.meter))
	l.lock()
	l.unlock()
	return l, nil
}

func (l *Limiter) clock() time.Duration { return time.Since(l.base) }

// at turns a reading of the clock into the limiter's time, which does not run
// backwards. The caller holds the lock.
func (l *Limiter) at(now time.Duration) time.Duration {
	if now < l.last {
		now = l.back(now)
	}
	l.last = now
	return now
}

// back judges a reading from before the last one. It may be older than what
// others did before the lock was free. If the clock itself has gone back (a
// limiter that is used in one synctest bubble after another), everything in
// force counts from now.
func (l *Limiter) back(now time.Duration) time.Duration {
	now = max(l.clock(), now)
	if l.last-now <= time.Millisecond {
		return max(now, l.last)
	}
	l.meter.Rebase(now)
	l.denied.lift()
	return now
}

// Allow takes n units if they may start now and nobody is in line, and reports
// whether it did. It never waits. n below 1 is never allowed.
func (l *Limiter) Allow(n int64) bool {
	if q := l.quick.Load(); q != nil && n > 0 {
		if ok, decided := q.take(l.clock(), n); decided {
			return ok
		}
	}
	// The denial is read before the clock: it stood at that instant, and that
	// instant was before now.
	since, until, units := l.denied.read()
	now := l.clock()
	if n <= 0 || (n >= units && now < until && now >= since) {
		return false
	}
	l.lock()
	now = l.at(now)
	ok := l.line.n == 0
	if ok {
		at := l.meter.Ready(now, n)
		if ok = at <= now; ok {
			l.meter.Take(now, n, true)
		} else {
			if l.wall {
				at = min(at, now+time.Second)
			}
			l.denied.set(now, at, n)
		}
	}
	l.unlock()
	return ok
}

// Wait takes n units, waiting in line until they may start or ctx is done.
//
// A *[Refusal] comes at once: [ErrTooLarge] if n is more than the limit ever
// admits, [ErrNever] if the limit is 0, [ErrDeadline] if the wait would pass
// the deadline of ctx; the first two also come to those in line when
// [Limiter.Set] makes them true. [ErrInvalid] is the error if n is below 1, and
// ctx.Err() if ctx is done, also if that happens together with the grant. On
// an error nothing is charged.
func (l *Limiter) Wait(ctx context.Context, n int64) error {
	return l.take(ctx, n, nil)
}

// Take is Wait that returns a Grant, for a cost that is settled later. The
// Grant is nil on an error. A caller that keeps it to itself does not allocate
// it on the heap.
func (l *Limiter) Take(ctx context.Context, n int64) (g *Grant, err error) {
	// Small enough to be inlined, so that the grant can live with its caller.
	g = new(Grant)
	if err = l.take(ctx, n, g); err != nil {
		g = nil
	}
	return
}

// take waits for n units and books them in g, if that is not nil.
func (l *Limiter) take(ctx context.Context, n int64, g *Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n <= 0 {
		return invalid(n)
	}
	now := l.clock()
	if q := l.quick.Load(); q != nil && g == nil {
		if ok, _ := q.take(now, n); ok {
			return nil
		}
	}
	l.lock()
	now = l.at(now)
	if l.line.n > 0 || l.meter.Ready(now, n) > now {
		return l.wait(ctx, now, n, g)
	}
	charge := l.meter.Take(now, n, true)
	if g != nil {
		g.limiter, g.charge = l, charge
		l.keep(&charge)
	}
	l.unlock()
	return nil
}

// Peek reports how long n units would wait if they were asked for now: 0 if
// they would be admitted. It takes nothing. While others are in line it is the
// least wait there can be. The errors are [ErrInvalid], [ErrTooLarge] and
// [ErrNever], as of Wait.
func (l *Limiter) Peek(n int64) (time.Duration, error) {
	if n <= 0 {
		return 0, invalid(n)
	}
	now := l.clock()
	l.lock()
	defer l.unlock()
	now = l.at(now)
	if err := l.impossible(n); err != nil {
		return 0, err
	}
	if l.line.n > 0 {
		return l.meter.Backlog(now, l.line.units, n) - now, nil
	}
	return l.meter.Ready(now, n) - now, nil
}

// Set changes the limit at once, also for those in line. It never creates
// capacity: what was taken stays taken, and a bucket keeps its level, at most
// its new burst. What a Grant of a Bucket gives back after a Set is lost; a
// debt is charged. The model stays: another one is [ErrInvalid].
func (l *Limiter) Set(limit Limit) error {
	if limit == nil {
		return fmt.Errorf("%w: no limit", ErrInvalid)
	}
	if err := limit.check(); err != nil {
		return err
	}
	now := l.clock()
	l.lock()
	now = l.at(now)
	if !limit.update(now, l.meter) {
		defer l.unlock()
		return fmt.Errorf("%w: a %v cannot become a %v", ErrInvalid, l.limit, limit)
	}
	l.limit = limit
	l.quick.Store(newQuick(l.meter))
	var refused woken
	for w := l.line.head; w != nil; {
		next := w.next
		if err := l.impossible(w.n); err != nil {
			w.err = err
			l.line.remove(w)
			refused.push(w)
		}
		w = next
	}
	l.stepUnlockWake(now, refused)
	return nil
}

// Stats are figures of one instant.
type Stats struct {
	Limit   Limit
	Free    int64 // units that are not used; below zero is debt
	Waiting int   // callers in line
	Queued  int64 // units that they ask for
}

// Stats returns the present figures.
func (l *Limiter) Stats() Stats {
	now := l.clock()
	l.lock()
	defer l.unlock()
	now = l.at(now)
	return Stats{Limit: l.limit, Free: l.meter.Free(now), Waiting: l.line.n, Queued: l.line.units}
}
