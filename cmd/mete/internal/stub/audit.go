package stub

import (
	"math"
	"strconv"
	"time"
)

// Audit is what the stub saw since it started or was last reset.
type Audit struct {
	// Requests = Accepted + Rejected. Rejected ones were above a limit or the
	// concurrency; accepted ones may have been answered with a fault.
	Requests int64 `json:"requests"`
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	// PeakInFlight is the most requests, rejected ones included, between
	// arrival and the last byte of the answer. One that the client abandons
	// counts until the end of its connection is seen.
	PeakInFlight int `json:"peak_in_flight"`
	// MaxStarts is the most arrivals, accepted or rejected, in any half-open
	// sliding window of that length. Over is how many arrivals ended a window
	// that held more than the limit in force then, and Limits what it is now.
	MaxStarts map[string]int64 `json:"max_starts"`
	Over      map[string]int64 `json:"over"`
	Limits    map[string]int64 `json:"limits"`
	// Repeats is how many distinct requests (method, target, body) were
	// answered 2xx more than once, Duplicates how many Idempotency-Keys were,
	// and RepeatedAnswers how many 2xx answers were not the first to their
	// request. A soft error is not such an answer.
	Repeats         int64 `json:"repeats"`
	Duplicates      int64 `json:"duplicates"`
	RepeatedAnswers int64 `json:"repeated_answers"`
	// Connections is how many connections carried at least one request.
	Connections int64 `json:"connections"`
	// MaxStallMS is the longest that the stub itself ran late. Stamps are
	// exact to that.
	MaxStallMS float64 `json:"max_stall_ms"`
	// Statuses counts answers. With Resets (cut off instead of answered),
	// Abandoned (the client left before its answer) and InFlight they add up
	// to Requests.
	Statuses   map[string]int64 `json:"statuses"`
	SoftErrors int64            `json:"soft_errors"`
	Resets     int64            `json:"resets"`
	Abandoned  int64            `json:"abandoned"`
	InFlight   int              `json:"in_flight"`
	// FirstMS and LastMS are the first and last arrival in Unix milliseconds,
	// SpanMS the time between them: (Requests-1) / SpanMS is the rate.
	FirstMS float64 `json:"first_ms"`
	LastMS  float64 `json:"last_ms"`
	SpanMS  float64 `json:"span_ms"`
	// Refusals are the first 64 answers of 429 and what came after each.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Tokens is there if quotas in tokens are.
	Tokens *TokenAudit `json:"tokens,omitempty"`
}

// starts follows the fullest window of one length.
type starts struct {
	per   time.Duration
	limit int64 // the least limit of that length; -1: none
	most  int64
	over  int64
}

// record counts the arrival at index i of the timeline. Arrivals may come out
// of order: then the windows that end at a later arrival hold one more too.
// So every window that ends at an arrival is counted exactly, and no other
// window can be fuller.
func (w *starts) record(l *timeline, i int) {
	t := l.at(i)
	for j := i; j < l.n; j++ {
		end := l.at(j)
		if end-int64(w.per) >= t {
			return
		}
		held := int64(j + 1 - l.after(end-int64(w.per)))
		w.most = max(w.most, held)
		if w.limit >= 0 && (held == w.limit+1 || j == i && held > w.limit) {
			w.over++
		}
	}
}

// counts is what POST /stub/reset clears, but for what is in flight.
type counts struct {
	requests, accepted, rejected int64
	resets, abandoned, soft      int64
	peak                         int
	statuses                     [600]int64
	connections                  int64
	first, last                  int64
	refusals                     []int64
	arrivals                     timeline
	windows                      []starts
	answered                     map[uint64]bool // hash of request or key: more than once?
	keys                         map[uint64]bool
	once                         map[uint64]struct{}
	repeats, duplicates, extra   int64
	generation                   int64 // which audit since the start, from 1
}

// setWindows keeps the figures of lengths that stay.
func (c *counts) setWindows(limits []Limit, measure []time.Duration) {
	old := c.windows
	c.windows = nil
	add := func(per time.Duration, limit int64) {
		for i := range c.windows {
			if w := &c.windows[i]; w.per == per {
				if limit >= 0 && (w.limit < 0 || limit < w.limit) {
					w.limit = limit
				}
				return
			}
		}
		w := starts{per: per, limit: limit}
		for _, o := range old {
			if o.per == per {
				w.most, w.over = o.most, o.over
			}
		}
		c.windows = append(c.windows, w)
	}
	for _, l := range limits {
		add(l.Per, l.N)
	}
	for _, d := range measure {
		add(d, -1)
	}
	if len(c.windows) == 0 {
		add(time.Second, -1)
	}
	for _, o := range old { // a length that was replaced is still of interest
		add(o.per, -1)
	}
}

// arrive records an arrival at t.
func (c *counts) arrive(t int64) {
	c.requests++
	if c.first == 0 || t < c.first {
		c.first = t
	}
	c.last = max(c.last, t)
	i := c.arrivals.insert(t)
	for k := range c.windows {
		c.windows[k].record(&c.arrivals, i)
	}
}

// answer records a 2xx answer to a request and its Idempotency-Key, by their
// hashes; 0 is no key.
func (c *counts) answer(request, key uint64) {
	if again(c.answered, request, &c.repeats) {
		c.extra++
	}
	if key != 0 {
		again(c.keys, key, &c.duplicates)
	}
}

// again tells whether h was seen before, and counts it the second time.
func again(seen map[uint64]bool, h uint64, distinct *int64) bool {
	counted, known := seen[h]
	if known && !counted {
		*distinct++
	}
	if !counted {
		seen[h] = known
	}
	return known
}

// Audit returns what was seen so far. It takes microseconds, however long the
// record is.
func (s *Server) Audit() Audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.ledger
	c := &l.counts
	a := Audit{
		Requests: c.requests, Accepted: c.accepted, Rejected: c.rejected,
		PeakInFlight: c.peak, InFlight: l.inFlight,
		MaxStarts: map[string]int64{}, Over: map[string]int64{}, Limits: map[string]int64{},
		Repeats: c.repeats, Duplicates: c.duplicates, RepeatedAnswers: c.extra,
		Connections: c.connections,
		MaxStallMS:  millis(s.stall.worst.Load()),
		Statuses:    map[string]int64{},
		SoftErrors:  c.soft, Resets: c.resets, Abandoned: c.abandoned,
		Tokens: l.tokens.audit(),
	}
	for _, w := range c.windows {
		a.MaxStarts[w.per.String()] = w.most
		if w.limit >= 0 {
			a.Over[w.per.String()] = w.over
			a.Limits[w.per.String()] = w.limit
		} else if w.over > 0 { // a limit that was a fault for a while
			a.Over[w.per.String()] = w.over
		}
	}
	for code, n := range c.statuses {
		if n > 0 {
			a.Statuses[strconv.Itoa(code)] = n
		}
	}
	if c.requests > 0 {
		wall := s.base.UnixNano()
		a.FirstMS, a.LastMS = millis(wall+c.first), millis(wall+c.last)
		a.SpanMS = millis(c.last - c.first)
		a.Refusals = c.listRefusals(wall)
	}
	return a
}

// Reset clears the audit: the record of arrivals, all counts, the memory of
// what was answered and of /once paths. Quotas, faults and connections stay as
// they are. Requests in flight are not counted when they end.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.clear()
	s.stall.worst.Store(0)
}

// millis are milliseconds to the microsecond.
func millis(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }
