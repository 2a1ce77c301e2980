package metetest

import (
	"net/http"
	"slices"
	"time"
)

// Call is the provider's record of one call. Times are counted from the first
// call that it got.
type Call struct {
	// Start is when it arrived, End when it was answered or its caller left;
	// below zero it is still in flight.
	Start, End time.Duration
	// Key says what it was for: the key of CallFor, the Idempotency-Key of a
	// request, or else its method, URL and a hash of its body.
	Key string
	// Status is how it was answered; 0 means that it is in flight or that its
	// caller has left.
	Status int
	// Refused says that it came in excess of a limit or the concurrency.
	Refused bool
}

// books are what a provider knows of its calls. They are plain data.
type books struct {
	first    time.Time
	calls    []Call // by Start
	accepted int
	inFlight int
	peak     int
	peakAt   time.Duration
}

// room reports whether another call may start now, and if a limit says no, in
// how long it would not.
func (b *books) room(now time.Time, limits []Limit, concurrency int) (free time.Duration, ok bool) {
	if len(b.calls) == 0 {
		b.first = now
	}
	ok = concurrency == 0 || b.inFlight < concurrency
	at := now.Sub(b.first)
	for _, l := range limits {
		// The window is half open: what started exactly Per ago has left it.
		n, oldest := 0, at
		for _, c := range slices.Backward(b.calls) {
			if at-c.Start >= l.Per || n >= l.N {
				break
			}
			if !c.Refused {
				n, oldest = n+1, c.Start
			}
		}
		if n >= l.N {
			ok, free = false, max(free, oldest+l.Per-at)
		}
	}
	return free, ok
}

// open books the start of a call. n counts those that were not refused.
func (b *books) open(now time.Time, key string, refused bool) (id, n int) {
	at := now.Sub(b.first)
	// A refused call is one too many in flight, if only for an instant.
	if b.inFlight >= b.peak {
		b.peak, b.peakAt = b.inFlight+1, at
	}
	call := Call{Start: at, End: -1, Key: key, Refused: refused}
	if refused {
		call.End, call.Status = at, http.StatusTooManyRequests
	} else {
		b.accepted++
		b.inFlight++
	}
	b.calls = append(b.calls, call)
	return len(b.calls) - 1, b.accepted
}

// close books the end of a call; that of a refused one is in the books already.
func (b *books) close(id int, now time.Time, status int) {
	if c := &b.calls[id]; c.End < 0 {
		c.End, c.Status = now.Sub(b.first), status
		b.inFlight--
	}
}

// Audit is what the provider's books say so far.
type Audit struct {
	// Starts is how many calls arrived, those that were Refused included.
	Starts, Refused int
	// InFlight is how many are in flight now.
	InFlight int
	// Peak is the most that were in flight together, PeakAt when it was first
	// reached, from the first start.
	Peak   int
	PeakAt time.Duration
	// Repeats is how many calls did again what had been done: the same key was
	// answered with success before. Calls without a key do not count.
	Repeats int
	// Span is the time from the first start to the last.
	Span time.Duration
}

// Audit returns the figures of the books. It does not block, and takes time in
// proportion to the number of calls.
func (p *Provider) Audit() Audit {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.books
	a := Audit{
		Starts: len(b.calls), Refused: len(b.calls) - b.accepted,
		InFlight: b.inFlight, Peak: b.peak, PeakAt: b.peakAt,
	}
	for _, again := range repeats(b.calls) {
		a.Repeats += len(again) - 1
	}
	if n := len(b.calls); n > 0 {
		a.Span = b.calls[n-1].Start
	}
	return a
}

// Calls returns a copy of the books, in the order of the starts.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.books.calls)
}

// MostStarts is the largest number of starts in any half-open window of that
// length, refused calls included, and when the first such window begins.
func (p *Provider) MostStarts(window time.Duration) (n int, from time.Duration) {
	calls := p.Calls()
	first, last := busiest(calls, window)
	if last < 0 {
		return 0, 0
	}
	return last - first + 1, calls[first].Start
}

// busiest is the first of the windows that hold the most starts: the calls from
// first to last. last is -1 if there are none.
func busiest(calls []Call, window time.Duration) (first, last int) {
	first, last = 0, -1
	lo := 0
	for hi := range calls {
		for calls[hi].Start-calls[lo].Start >= window && lo < hi {
			lo++
		}
		if hi-lo > last-first {
			first, last = lo, hi
		}
	}
	return first, last
}

// repeats are the calls that were answered with success, by key, of keys with
// more than one.
func repeats(calls []Call) map[string][]Call {
	done := map[string][]Call{}
	for _, c := range calls {
		if c.Key != "" && c.Status >= 200 && c.Status < 300 {
			done[c.Key] = append(done[c.Key], c)
		}
	}
	for key, again := range done {
		if len(again) < 2 {
			delete(done, key)
		}
	}
	return done
}
