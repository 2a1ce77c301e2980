package metetest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metehttp"
)

// Limit is a quota of the provider: N calls in any window of Per, half open.
type Limit struct {
	N   int
	Per time.Duration
}

// Provider is a remote API that does not exist. It refuses what passes its
// limits with 429 and keeps books of every call. The zero value answers
// everything with 200 at once.
//
// It is called as a function (Call, CallFor), as an http.RoundTripper without
// sockets, or as the http.Handler of an httptest.Server. The first two work in
// a testing/synctest bubble. It shares no code with the limiter that it checks.
//
// The fields must not be changed once it has been called. Its methods may be
// called from any goroutine. Each call that it gets costs some 100 bytes, kept
// for the life of the provider.
type Provider struct {
	// Limits are the quotas. A call that finds no room in one of them is
	// refused and charged to none.
	Limits []Limit
	// Concurrency is how many calls may be in flight; 0 is no bound.
	Concurrency int
	// Latency is how long it takes to answer a call that is not refused.
	Latency time.Duration
	// Reply, if it is not nil, decides how the n-th call that is not refused is
	// answered, from 1. It is called without a lock.
	Reply func(n int) Reply

	mu    sync.Mutex
	books books
}

// Reply is how one call is answered. The zero value is a 200 after the
// provider's Latency.
type Reply struct {
	// Status is the HTTP status; 0 is 200.
	Status int
	// After is how long the answer takes; 0 is the provider's Latency.
	After time.Duration
	// RetryAfter is sent in the header of that name, in seconds rounded up;
	// 0 sends none.
	RetryAfter time.Duration
	// Body is the body of the HTTP answer.
	Body string
}

// Call calls the provider and blocks until it has answered or ctx ends. Its
// error is nil, ctx's, or a *metehttp.StatusError marked for [mete.Do]: with
// After if the provider pushes back, with Permanent if the call is at fault.
func (p *Provider) Call(ctx context.Context) error { return p.CallFor(ctx, "") }

// CallFor is Call with a key that says what the call is for, so that a
// repetition of what was already done is found by [NoRepeats].
func (p *Provider) CallFor(ctx context.Context, key string) error {
	id, reply := p.begin(key)
	if err := sleep(ctx, reply.After); err != nil {
		p.end(id, 0)
		return err
	}
	p.end(id, reply.Status)
	if reply.Status < 400 {
		return nil
	}
	err := error(&metehttp.StatusError{Status: reply.Status, Header: reply.header(), RetryAfter: reply.RetryAfter})
	switch {
	case reply.Status == http.StatusTooManyRequests, reply.Status == http.StatusServiceUnavailable && reply.RetryAfter > 0:
		return mete.After(err, reply.RetryAfter)
	case reply.Status < 500:
		return mete.Permanent(err)
	default:
		return err
	}
}

// begin books a call that has arrived and says how it is answered.
func (p *Provider) begin(key string) (id int, reply Reply) {
	p.mu.Lock()
	now := time.Now() // under the lock, so that starts are in order
	free, ok := p.books.room(now, p.Limits, p.Concurrency)
	id, n := p.books.open(now, key, !ok)
	p.mu.Unlock()
	if !ok {
		// A wait for a permit has no known end; a second is what APIs say then.
		if free <= 0 {
			free = time.Second
		}
		return id, Reply{Status: http.StatusTooManyRequests, RetryAfter: ceil(free)}
	}
	if p.Reply != nil {
		known := false
		defer func() {
			if !known { // a panic or Goexit: the call is not in flight any more
				p.end(id, 0)
			}
		}()
		reply = p.Reply(n)
		known = true
	}
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	if reply.After == 0 {
		reply.After = p.Latency
	}
	reply.RetryAfter = ceil(reply.RetryAfter)
	return id, reply
}

// end books that the call was answered with status, or with 0 that its caller
// has left.
func (p *Provider) end(id, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.close(id, time.Now(), status)
}

// ceil rounds up to what a Retry-After header can say.
func ceil(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
