// Package rate has the API of golang.org/x/time/rate on top of mete's rate, as
// far as the two agree, so that the tests of that package can be run against
// mete. It is no replacement: nothing but those tests uses it.
//
// They give the time with each call, and mete reads the clock. So each of them
// runs in a testing/synctest bubble, and the adapter sleeps until the time that
// it is given; a time in the past is now. A reservation is a caller in line, its
// cancellation one that gives up.
package rate

//lint:file-ignore U1000 the tests of x/time, which belong to its package, use what is not exported

import (
	"context"
	"math"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/rate"
)

// Limit is a rate per second.
type Limit float64

// Inf admits everything; mete has no limiter for that.
const Inf = Limit(math.MaxFloat64)

// InfDuration is no bound on a reservation.
const InfDuration = time.Duration(math.MaxInt64)

// slowest is the longest time per unit that mete takes: 100 years.
const slowest = 100 * 365 * 24 * time.Hour

// Every is the rate of one unit per interval.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(float64(time.Second) / float64(interval))
}

// Limiter is a token bucket.
type Limiter struct {
	lim   *rate.Limiter
	rate  Limit
	burst int

	base, now time.Time // a time of the test, and the bubble's at that instant

	tokens, last, lastEvent any // a test logs them
}

// NewLimiter returns a full bucket.
func NewLimiter(r Limit, burst int) *Limiter {
	l := &Limiter{rate: r, burst: burst}
	lim, err := rate.New(l.bucket())
	if err != nil {
		panic(err)
	}
	l.lim = lim
	return l
}

// bucket is the limit as mete has it: a unit per time.
func (l *Limiter) bucket() rate.Bucket {
	b := rate.Bucket{N: 1, Per: time.Second, Burst: int64(l.burst)}
	switch {
	case l.rate == Inf:
		panic("mete has no limiter of an infinite rate")
	case l.rate <= 0:
		b.N = 0
	default:
		b.Per = time.Duration(min(float64(time.Second)/float64(l.rate), float64(slowest)))
	}
	return b
}

// at sleeps until the test's time t.
func (l *Limiter) at(t time.Time) {
	if l.base.IsZero() {
		l.base, l.now = t, time.Now()
	}
	<-time.After(t.Sub(l.base) - time.Since(l.now))
	synctest.Wait() // until those in line whose time has come are through
}

// Allow takes a unit if it is there.
func (l *Limiter) Allow() bool { return l.lim.Allow(1) }

// AllowN takes n units if they are there at t. For mete no units are a mistake;
// here they are always there.
func (l *Limiter) AllowN(t time.Time, n int) bool {
	l.at(t)
	return n == 0 || l.lim.Allow(int64(n))
}

// TokensAt is how many units are there at t, less those that are asked for.
func (l *Limiter) TokensAt(t time.Time) float64 {
	l.at(t)
	s := l.lim.Stats()
	return float64(s.Free - s.Queued)
}

// SetLimit changes the rate.
func (l *Limiter) SetLimit(r Limit) {
	l.rate = r
	l.set()
}

// SetLimitAt changes the rate at t.
func (l *Limiter) SetLimitAt(t time.Time, r Limit) {
	l.at(t)
	l.SetLimit(r)
}

// SetBurstAt changes the size of the bucket at t.
func (l *Limiter) SetBurstAt(t time.Time, burst int) {
	l.at(t)
	l.burst = burst
	l.set()
}

func (l *Limiter) set() {
	if err := l.lim.Set(l.bucket()); err != nil {
		panic(err)
	}
}

// WaitN waits for n units.
func (l *Limiter) WaitN(ctx context.Context, n int) error { return l.lim.Wait(ctx, int64(n)) }

// wait is WaitN with the clock of the test, which has to be moved: a millisecond
// at a time, beside the bubble's.
func (l *Limiter) wait(ctx context.Context, n int, _ time.Time, newTimer func(time.Duration) (<-chan time.Time, func() bool, func())) error {
	done := make(chan error, 1)
	go func() { done <- l.WaitN(ctx, n) }()
	for {
		synctest.Wait()
		select {
		case err := <-done:
			return err
		default:
		}
		_, _, advance := newTimer(time.Millisecond)
		advance()
		<-time.After(time.Millisecond)
	}
}

// Reservation is a caller in line.
type Reservation struct {
	ok        bool
	timeToAct time.Time
	limiter   *Limiter
	cancel    context.CancelFunc
}

// reserveN puts a caller in line at t, unless it had to wait for longer than
// longest.
func (l *Limiter) reserveN(t time.Time, n int, longest time.Duration) Reservation {
	l.at(t)
	due, err := l.lim.Peek(int64(n))
	if err != nil || due > longest {
		return Reservation{limiter: l}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = l.lim.Wait(ctx, int64(n)) }() // what it came to is seen in those after it
	synctest.Wait()
	return Reservation{ok: true, timeToAct: l.base.Add(time.Since(l.now) + due), limiter: l, cancel: cancel}
}

// CancelAt leaves the line at t.
func (r *Reservation) CancelAt(t time.Time) {
	if r.ok {
		r.limiter.at(t)
		r.cancel()
		synctest.Wait()
	}
}
