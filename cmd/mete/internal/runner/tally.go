package runner

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Tally counts what a run does.
type Tally struct {
	begun     time.Time
	bad       atomic.Int64 // bad rows that have no record
	retries   atomic.Int64
	throttled atomic.Int64
	unpriced  atomic.Int64 // answers whose true cost cannot be told
	latency   progress.Latency
	queue     progress.Latency
	waits     [len(waitNames)]progress.Latency // apart by bound

	mu       sync.Mutex
	rows     progress.Rows
	statuses map[int]int64
	errors   map[record.Kind]*progress.ErrorCount
	conn     time.Duration
	backoff  time.Duration
	recent   [2]recent // the last two spans of five seconds
	samples  []sample  // of the last ten seconds
	lap      lap
}

// waitNames are the bounds whose waits have a histogram each, with all limits
// as one.
var waitNames = [...]string{"semaphore", "limit", "pause", "breaker", "store", "conn", "backoff"}

// apart records waits by bound; one that did not occur is none.
func (t *Tally) apart(waits ...time.Duration) {
	for i, d := range waits {
		if d > 0 {
			t.waits[i].Record(d)
		}
	}
}

// recent is what happened in a span of a few seconds.
type recent struct {
	begun   time.Time
	starts  int64
	latency *progress.Latency
}

// sample is what the gates said at an instant.
type sample struct {
	at      time.Time
	blocked map[string]time.Duration
	stats   map[*provider]mete.Stats
}

const span = 5 * time.Second

func newTally() *Tally {
	return &Tally{begun: time.Now(), statuses: map[int]int64{}, errors: map[record.Kind]*progress.ErrorCount{}}
}

func (t *Tally) started(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(at)
	t.recent[0].starts++
}

// turn begins a new span when the last one is over.
func (t *Tally) turn(now time.Time) {
	if now.Sub(t.recent[0].begun) >= span {
		t.recent[1] = t.recent[0]
		t.recent[0] = recent{begun: now, latency: &progress.Latency{}}
	}
}

func (t *Tally) waited(w mete.Waits, conn time.Duration) {
	t.queue.Record(w.Queue())
	t.apart(w.Semaphore, w.Limit, w.Pause, w.Breaker, w.Store, conn)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn += conn
}

// resumed counts a row that an earlier run has finished.
func (t *Tally) resumed(ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows.Resumed++
	t.rows.Done++
	if ok {
		t.rows.OK++
	} else {
		t.rows.Failed++
	}
}

// duplicate counts a row that shares the request of another.
func (t *Tally) duplicate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows.Duplicates++
}

// finished counts a row that has its record.
func (t *Tally) finished(r *record.Record) {
	t.apart(0, 0, 0, 0, 0, 0, r.Waits.Backoff)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows.Done++
	t.lap.finished(r)
	t.backoff += r.Waits.Backoff
	if r.Status > 0 {
		t.statuses[r.Status]++
	}
	if r.Status > 0 && r.Attempts > 0 { // not out of the cache, nor of another row
		t.turn(r.End)
		t.recent[0].latency.Record(r.Latency)
	}
	if r.Cache == "hit" {
		t.rows.Cached++
	}
	if r.OK {
		t.rows.OK++
		return
	}
	t.rows.Failed++
	if r.Error == nil {
		return
	}
	e := t.errors[r.Error.Kind]
	if e == nil {
		e = &progress.ErrorCount{Kind: string(r.Error.Kind), Example: r.ID}
		t.errors[r.Error.Kind] = e
	}
	e.Count++
}

// blocked adds up what the heads of all queues were blocked on, and the waits
// that follow admission.
func (r *run) blocked() map[string]time.Duration {
	sum := map[string]time.Duration{}
	for _, p := range r.places.all() {
		for bound, d := range p.gate.Stats().Blocked {
			sum[bound] += d
		}
	}
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	// Calls wait for connections side by side, heads of queues one at a time:
	// what counts is for how long one of the permits was waiting.
	permits := time.Duration(max(r.permits(), 1))
	if d := r.tally.conn / permits; d > 0 {
		sum["conn"] += d
	}
	if d := r.tally.backoff / permits; d > 0 {
		sum["backoff"] += d
	}
	return sum
}

func (r *run) permits() int {
	n := r.o.Other.Gate.MaxConcurrency()
	for _, s := range r.o.Providers {
		n += s.Gate.MaxConcurrency()
	}
	return n
}

// Snapshot is the state of the run now.
func (n *Runner) Snapshot() progress.Snapshot {
	r := &n.run
	t := r.tally
	now := time.Now()
	blocked := r.blocked()
	s := progress.Snapshot{Total: r.o.Total, Elapsed: now.Sub(t.begun), Retries: t.retries.Load(), Throttled: t.throttled.Load()}
	paused, open := time.Duration(0), false
	list, stats := r.called()
	for _, p := range list {
		st := stats[p]
		s.InFlight += st.InUse
		s.Concurrency += st.Concurrency
		s.LimitPerSecond += p.counts.LimitPerSecond
		if st.Paused > 0 && (paused == 0 || st.Paused < paused) {
			paused, s.PauseReason = st.Paused, "Retry-After of "+p.name
		}
		open = open || st.Paused == 0
	}
	if len(list) == 1 {
		s.Limit = list[0].counts.Limit
	} else if !allLimited(list) {
		s.LimitPerSecond = 0
	}
	if !open {
		s.PausedFor = paused
	} else {
		s.PauseReason = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Done, s.Resumed, s.OK, s.Failed = t.rows.Done, t.rows.Resumed, t.rows.OK, t.rows.Failed
	t.turn(now)
	starts, since := t.recent[0].starts, t.recent[0].begun
	q := t.recent[0].latency.Quantiles()
	if now.Sub(since) < span && t.recent[1].latency != nil && t.recent[0].begun.Sub(t.recent[1].begun) < 2*span {
		starts, since = starts+t.recent[1].starts, t.recent[1].begun
		if q.Count < 20 {
			q = t.recent[1].latency.Quantiles()
		}
	}
	if d := now.Sub(since).Seconds(); d > 0.5 {
		s.Rate = float64(starts) / d
	}
	s.P50, s.P95 = q.P50, q.P95
	s.Bound, s.BoundShare = t.binding(sample{now, blocked, stats})
	if first := t.lately(now); now.Sub(first.at) > time.Second {
		s.Diagnosis = diagnosis(first.stats, stats)
	}
	return s
}

// called are the providers that anything was asked of, or all before that, and
// what their gates say. A provider that is only configured has no part in what
// is in flight, nor in the pace.
func (r *run) called() ([]*provider, map[*provider]mete.Stats) {
	all := r.places.all()
	stats := map[*provider]mete.Stats{}
	var list []*provider
	for _, p := range all {
		stats[p] = p.gate.Stats()
		if asked(stats[p]) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		list = all
	}
	return list, stats
}

func allLimited(list []*provider) bool {
	for _, p := range list {
		if p.counts.LimitPerSecond == 0 {
			return false
		}
	}
	return true
}

// binding is what the queues were blocked on most in the last ten seconds.
func (t *Tally) binding(now sample) (string, float64) {
	t.samples = append(t.samples, now)
	for len(t.samples) > 2 && now.at.Sub(t.samples[1].at) >= 10*time.Second {
		t.samples = t.samples[1:]
	}
	name, most, all := "", time.Duration(0), time.Duration(0)
	for bound, d := range now.blocked {
		d -= t.samples[0].blocked[bound]
		all += d
		if d > most {
			name, most = bound, d
		}
	}
	if all == 0 {
		return "", 0
	}
	return name, float64(most) / float64(all)
}

// Summary is what the run did.
func (n *Runner) Summary() progress.Summary {
	r := &n.run
	t := r.tally
	s := progress.Summary{Duration: time.Since(t.begun), Wait: t.queue.Quantiles(), Latency: t.latency.Quantiles(), WaitBuckets: t.queue.Buckets()}
	list := r.places.all()
	stats := map[*provider]mete.Stats{}
	for i, p := range list {
		stats[p] = p.gate.Stats()
		f := p.figures()
		if f.Starts == 0 && f.OK+f.Failed == 0 {
			continue
		}
		if i >= manyPlaces {
			other := &s.Providers[len(s.Providers)-1]
			other.Name = "(other)"
			other.Starts += f.Starts
			other.OK += f.OK
			other.Failed += f.Failed
			other.Throttled += f.Throttled
			other.Retries += f.Retries
			continue
		}
		s.Providers = append(s.Providers, f)
	}
	s.Diagnosis = diagnosis(nil, stats)
	for bound, d := range r.blocked() {
		s.Waits = append(s.Waits, progress.Wait{Bound: bound, Total: d})
	}
	for i, name := range waitNames {
		if q := t.waits[i].Quantiles(); q.Count > 0 {
			s.WaitsApart = append(s.WaitsApart, progress.WaitHistogram{Bound: name, Quantiles: q, Buckets: t.waits[i].Buckets()})
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Rows = t.rows
	s.Rows.Total = r.o.Total
	s.Statuses = t.statuses
	for _, e := range t.errors {
		s.Errors = append(s.Errors, *e)
	}
	return s
}
