package mete

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

// provider is a remote API with a real quota and its own books: it counts what
// arrives and refuses what is too much, in one of three ways.
type provider struct {
	kind   string // sliding, fixed or bucket
	n      int    // units per
	per    time.Duration
	burst  float64       // of a bucket
	phase  time.Duration // of a fixed window
	rtt    time.Duration
	hint   bool // 429 says when to come back
	header bool // every response shows the quota
	window bool // and how long its window is

	unread   atomic.Int64 // successes whose headers nobody wanted
	mu       sync.Mutex
	begun    time.Time
	accepted []time.Duration
	refused  []time.Duration
	level    float64
	filled   time.Duration
}

// arrive decides about a request. left is what remains, reset when there is
// more, full when all of it is back.
func (p *provider) arrive() (ok bool, left int, reset time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.begun)
	switch p.kind {
	case "sliding":
		used := p.since(now - p.per)
		if ok = used < p.n; ok {
			used++
		}
		left, reset = p.n-used, p.per
		if !ok {
			reset = p.accepted[len(p.accepted)-p.n] + p.per - now
		}
	case "fixed":
		start := (now+p.phase)/p.per*p.per - p.phase
		used := p.since(start - 1)
		if ok = used < p.n; ok {
			used++
		}
		left, reset = p.n-used, start+p.per-now
	case "bucket":
		p.level = min(p.burst, p.level+float64(p.n)*float64(now-p.filled)/float64(p.per))
		p.filled = now
		if ok = p.level >= 1; ok {
			p.level--
		}
		left = int(p.level)
		reset = time.Duration((1 - min(p.level, 1)) * float64(p.per) / float64(p.n))
	}
	if ok {
		p.accepted = append(p.accepted, now)
	} else {
		p.refused = append(p.refused, now)
	}
	return ok, left, reset
}

// since is how many were accepted after a time.
func (p *provider) since(from time.Duration) (n int) {
	for i := len(p.accepted) - 1; i >= 0 && p.accepted[i] > from; i-- {
		n++
	}
	return n
}

// between is how many of a book lie in [from, to).
func between(book []time.Duration, from, to time.Duration) (n int) {
	for _, at := range book {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

var errRefused = errors.New("429 Too Many Requests")

// call makes one request and reports its outcome.
func (p *provider) call() Outcome {
	time.Sleep(p.rtt / 2)
	ok, left, reset := p.arrive()
	time.Sleep(p.rtt / 2)
	o := Outcome{Answered: ok}
	if !ok {
		o = Outcome{Err: errRefused, Throttled: true, Repeat: true, Free: true}
		if p.hint { // whole seconds, rounded up, as in a header
			o.Hinted, o.RetryAfter = true, (reset+time.Second-1)/time.Second*time.Second
		}
	}
	if p.header {
		q := quota.Quota{Name: "requests", Unit: Requests, Limit: int64(p.n), HasLimit: true, Remaining: int64(left), HasRemaining: true,
			Reset: time.Now().Round(0).Add(reset), Bucket: p.kind == "bucket"}
		if p.window {
			q.Window = p.per
		}
		o.Quotas = []quota.Quota{q}
	}
	return o
}

// work keeps callers busy with the provider for d.
func (p *provider) work(t testing.TB, g *Gate, callers int, d time.Duration) {
	p.mu.Lock()
	if p.begun.IsZero() {
		p.begun = time.Now()
		p.level = p.burst
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := p.once(ctx, g); err != nil && !errors.Is(err, errRefused) {
					return // it could not start before the end
				}
			}
		})
	}
	wg.Wait()
}

// once makes a call of as many attempts as it takes.
func (p *provider) once(ctx context.Context, g *Gate) error {
	tries := g.Tries(ctx, Call{Patient: true})
	for {
		permit, err := tries.Next()
		if err != nil {
			return err
		}
		o := p.call()
		if o.Err == nil && !permit.WantsQuotas() {
			o.Quotas = nil // as metehttp, which does not read them then
			p.unread.Add(1)
		}
		if !tries.Again(o) {
			permit.Release()
			return o.Err
		}
	}
}

func (p *provider) String() string {
	s := fmt.Sprintf("%s %d per %v", p.kind, p.n, p.per)
	if p.kind == "bucket" {
		s += fmt.Sprintf(" burst %v", p.burst)
	}
	if p.hint {
		s += " with Retry-After"
	}
	if p.header {
		s += " with headers"
	}
	return s
}
