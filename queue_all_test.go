package mete

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/internal/meter"
)

// shape is what one of the three callers asks for.
type shape struct {
	lane         int
	weight, cost int64
	patient      bool // also while the circuit is open
}

// trial is one setting in which all sequences of operations are tried.
type trial struct {
	name     string
	cfg      Config
	smaller  int // the other Concurrency
	callers  [3]shape
	patience time.Duration
	answered bool // a release tells that the provider has answered
	length   int
}

const (
	tick      = 600 * time.Millisecond
	closeTime = 500 * time.Millisecond
)

// pair is the queue and its model, which see the same operations.
type pair struct {
	*trial
	gate    *Gate
	q       *queue
	now     time.Duration
	again   time.Duration
	waiting [3]*waiter
	held    [3]*flight
	model   model
	calls   [3]*modelCall
	log     []string
}

func (tr *trial) start() *pair {
	g, err := New(tr.cfg)
	if err != nil {
		panic(err)
	}
	p := &pair{trial: tr, gate: g, q: &g.q, again: meter.Later, now: time.Second}
	p.model = model{circuit: modelCircuit{Config: tr.cfg.Breaker}, now: p.now, permits: int64(tr.cfg.Concurrency), opening: -1}
	for _, l := range tr.cfg.Lanes {
		p.model.lanes = append(p.model.lanes, modelLane{Lane: l})
	}
	if len(tr.cfg.Limits) > 0 {
		p.model.limit = tr.cfg.Limits[0]
		p.model.span = p.model.limit.Per + p.model.limit.Margin
	}
	return p
}

// step is what the gate does after every operation.
func (p *pair) step() {
	p.q.book(p.now)
	p.again = p.q.step(p.now)
	for p.q.expire(p.now) {
		p.again = p.q.step(p.now)
	}
}

// enabled lists the operations that make sense now. Of callers that ask for
// the same, only the first idle one comes: the others give nothing new.
func (p *pair) enabled(list []string) []string {
	last, before := "", ""
	if n := len(p.log); n > 0 {
		last = p.log[n-1]
		if n > 2 && p.log[n-2] == "t" && p.log[n-3] == "t" {
			before = "t"
		}
	}
callers:
	for i := range 3 {
		switch {
		case p.held[i] != nil:
			list = append(list, fmt.Sprint("r", i), fmt.Sprint("x", i))
			if p.cfg.Breaker.Failures > 0 {
				list = append(list, fmt.Sprint("f", i))
			}
		case p.waiting[i] != nil:
			list = append(list, fmt.Sprint("c", i))
		default:
			for j := range i {
				if p.callers[j] == p.callers[i] && p.held[j] == nil && p.waiting[j] == nil {
					continue callers
				}
			}
			list = append(list, fmt.Sprint("a", i))
		}
	}
	if last != "s" { // twice is nothing
		list = append(list, "s")
	}
	if last != "p" {
		list = append(list, "p")
	}
	if last != "" && (last != "t" || before != "t") {
		list = append(list, "t")
	}
	return list
}

func (p *pair) do(op string) error {
	p.log = append(p.log, op)
	i := int(op[len(op)-1] - '0')
	q, m := p.q, &p.model
	q.book(p.now)
	switch op[0] {
	case 'a':
		s := p.callers[i]
		c := &modelCall{id: i, lane: s.lane, weight: s.weight, cost: s.cost, patient: s.patient}
		f := &flight{lane: q.lanes[s.lane], weight: s.weight}
		if len(q.limits) > 0 {
			f.costs = []int64{s.cost}
		}
		w := &waiter{lane: f.lane, weight: s.weight, costs: f.costs, flight: f, born: p.now, patient: s.patient}
		r, _ := q.impossible(w.lane, w.weight, w.costs)
		if (r != "") != m.hopeless(c) {
			return fmt.Errorf("impossible: %q", r)
		}
		if r != "" {
			return nil
		}
		if p.patience > 0 {
			w.expire, c.gives = p.now+p.patience, p.now+p.patience
		}
		w.blocked = append(w.blocked, q.blocked...)
		q.enqueue(w, false)
		p.waiting[i], p.calls[i] = w, c
		p.step()
		m.acquire(c)
	case 'c':
		w := p.waiting[i]
		q.remove(w)
		w.flight.waits = q.waited(w)
		w.outcome, w.chain, q.wake = Canceled, q.wake, w
		p.step()
		m.cancel(p.calls[i])
	case 'r', 'f', 'x':
		f, c := p.held[i], p.calls[i]
		p.held[i], p.calls[i] = nil, nil
		switch {
		case op[0] == 'r' && p.answered:
			q.answered(p.now, f)
			q.ended(p.now, f, breaker.Success)
			m.judge(c, false)
		case op[0] == 'f':
			q.ended(p.now, f, breaker.Failure)
			m.judge(c, true)
		}
		q.release(p.now, f, op[0] == 'x')
		p.step()
		m.release(c, op[0] == 'x', op[0] == 'r' && p.answered)
	case 's':
		n := int64(p.cfg.Concurrency)
		if q.permits == n {
			n = int64(p.smaller)
		}
		q.permits = n
		q.sweep(func(w *waiter) (Reason, time.Duration) {
			r, _ := q.impossible(w.lane, w.weight, w.costs)
			return r, 0
		})
		p.step()
		m.resize(n)
	case 'p':
		q.closeUntil(p.now, p.now+closeTime, 0)
		p.step()
		m.pause(closeTime)
	case 't':
		// The gate's timer fires at again, and not otherwise.
		for end := p.now + tick; p.now < end; p.step() {
			if p.again <= p.now {
				return fmt.Errorf("the timer is set to the past: %v at %v", p.again, p.now)
			}
			p.now = min(end, p.again)
		}
		m.pass(tick)
	}
	return p.compare()
}

// compare looks for the first difference between the queue and its model.
func (p *pair) compare() error {
	q, m := p.q, &p.model
	ends := 0
	for w := q.wake; w != nil; ends++ {
		next := w.chain
		w.chain = nil
		i := 0
		for p.waiting[i] != w {
			i++
		}
		c := p.calls[i]
		if c.reason != w.outcome || c.started != (w.outcome == "") {
			return fmt.Errorf("caller %d: %q, want %q", i, w.outcome, c.reason)
		}
		got := w.flight.waits
		sum := c.waits[byPause] + c.waits[byBreaker] + c.waits[bySemaphore] + c.waits[byLimit]
		if got.Semaphore != c.waits[bySemaphore] || got.Pause != c.waits[byPause] || got.Breaker != c.waits[byBreaker] || got.Limit != c.waits[byLimit] || got.Queue() != sum {
			return fmt.Errorf("caller %d waited %+v, want %v", i, got, c.waits)
		}
		p.waiting[i] = nil
		if c.started {
			p.held[i] = w.flight
			if sum > 0 && w.flight.granted-c.came != sum {
				return fmt.Errorf("caller %d was granted after %v and waited %v", i, w.flight.granted-c.came, sum)
			}
		} else {
			p.calls[i] = nil
		}
		w = next
	}
	q.wake = nil
	if ends != len(m.finished) {
		return fmt.Errorf("%d calls ended, want %d", ends, len(m.finished))
	}
	m.finished = m.finished[:0]
	var inUse int64
	waiting := 0
	for i := range 3 {
		if p.held[i] != nil {
			inUse += p.held[i].weight
		}
		if p.waiting[i] != nil {
			waiting++
		}
	}
	if q.inUse != inUse || q.inUse != m.inUse(-1) || q.waiting != waiting {
		return fmt.Errorf("in use %d, held %d, want %d; waiting %d of %d", q.inUse, inUse, m.inUse(-1), q.waiting, waiting)
	}
	for i := range m.lanes {
		l := q.lanes[i]
		if l.used != m.inUse(i) || l.waiting != len(m.lanes[i].calls) {
			return fmt.Errorf("lane %d: used %d of %d, waiting %d of %d", i, l.used, m.inUse(i), l.waiting, len(m.lanes[i].calls))
		}
	}
	bound := byNothing
	if c := m.first(); c != nil {
		bound = m.obstacle(c)
	}
	names := [...]int{byNothing: noBound, byPause: boundPause, byBreaker: boundBreaker, bySemaphore: boundSemaphore, byLimit: boundLimits}
	if q.bound != names[bound] {
		return fmt.Errorf("blocked by %q, want %q", q.boundName(q.bound), q.boundName(names[bound]))
	}
	for _, by := range []obstacle{byPause, byBreaker, bySemaphore, byLimit} {
		if i := names[by]; i < len(q.blocked) && q.blocked[i] != m.blocked[by] {
			return fmt.Errorf("blocked %v by %s, want %v", q.blocked[i], q.boundName(i), m.blocked[by])
		}
	}
	return nil
}

// state describes all that can matter from now on, of the queue and of the
// model, with times as seen from now.
func (p *pair) state(left int) string {
	q, m := p.q, &p.model
	b := fmt.Appendf(nil, "%d %d %d %v|", left, q.permits, q.bound, p.again-p.now)
	if p.again == meter.Later {
		b = append(b, "never"...)
	}
	for i := len(p.log) - 1; i >= 0; i-- {
		b = append(b, p.log[i][0])
		if p.log[i] != "t" {
			break
		}
	}
	b = fmt.Appendf(b, "|%d %v %d", max(q.pause.until-p.now, 0), q.pause.probing, max(m.closed-m.now, 0))
	if m.opening >= 0 {
		b = fmt.Appendf(b, " open %d %d", min(p.now-q.pause.rampFrom, 2*time.Second), min(m.now-m.opening, 2*time.Second))
	}
	if p.cfg.Breaker.Failures > 0 {
		b = fmt.Appendf(b, "|b%v %d %v", *q.circuit, max(m.circuit.until-m.now, 0), m.circuit.results)
		for i := range 3 {
			if p.held[i] != nil {
				b = fmt.Appendf(b, " %v %d", p.held[i].ticket, m.circuit.changes-p.calls[i].changes)
			}
		}
	}
	for i := range 3 {
		switch {
		case p.held[i] != nil:
			b = fmt.Appendf(b, "|h%d %v %v", i, q.pause.triedBy(p.held[i]), m.probe == p.calls[i])
		case p.waiting[i] != nil:
			s := q.waited(p.waiting[i])
			b = fmt.Appendf(b, "|w%d %d %d %d %d %d", i, p.waiting[i].expire-p.now, s.Breaker, s.Semaphore, s.Pause, s.Limit)
		}
	}
	for i, l := range q.lanes[:len(q.lanes)-1] {
		b = fmt.Appendf(b, "|l %v %v", l.vt-q.vt, m.lanes[i].vt-m.vt)
		for w := l.first; w != nil; w = w.next {
			for j := range p.waiting {
				if p.waiting[j] == w {
					b = fmt.Appendf(b, " %d", j)
				}
			}
		}
	}
	for i := range q.limits {
		for n := range q.limits[i].N + 1 {
			b = fmt.Appendf(b, " %d", q.limits[i].meter.Ready(p.now, n+1)-p.now)
		}
	}
	for _, x := range m.charges {
		if age := m.now - x.at; age < m.span || m.limit.Bucket {
			holder := 9
			for j := range p.held {
				if p.held[j] != nil && p.calls[j] == x.call {
					holder = j
				}
			}
			b = fmt.Appendf(b, " %d:%d:%d", age, x.n, holder)
		}
	}
	return string(b)
}

// Every sequence of operations of three callers: the queue does at every
// instant what its model does, which has no state but its lists. So permits are
// conserved (agronholm/anyio#947), nobody waits while everything it needs is
// free (golang/go#37852, agronholm/anyio#646), nothing is granted beyond the
// permits (agronholm/anyio#1223) or the limit, a refund restores the limit
// exactly (golang/go#56924), and the time is booked on what blocked.
func TestAllSequences(t *testing.T) {
	one := []Lane{{Name: "one", Weight: 1}}
	window := []Limit{{N: 3, Per: 800 * time.Millisecond, Burst: 3, Margin: 5 * time.Millisecond}}
	bucket := []Limit{{N: 2, Per: time.Second, Burst: 3, Bucket: true}}
	trials := []trial{
		{name: "permits", cfg: Config{Concurrency: 3, Lanes: one}, smaller: 1, answered: true,
			callers: [3]shape{{weight: 1}, {weight: 2}, {weight: 3}}, length: 8},
		{name: "window", cfg: Config{Concurrency: 3, Lanes: one, Limits: window}, smaller: 2,
			callers: [3]shape{{weight: 1, cost: 2}, {weight: 2, cost: 1}, {weight: 2, cost: 1}}, length: 8},
		{name: "bucket and patience", cfg: Config{Concurrency: 2, Lanes: one, Limits: bucket}, smaller: 1, patience: 700 * time.Millisecond,
			callers: [3]shape{{weight: 1, cost: 3}, {weight: 1, cost: 1}, {weight: 1, cost: 1}}, length: 8},
		{name: "lanes", cfg: Config{Concurrency: 4, Lanes: []Lane{{Name: "a", Weight: 4}, {Name: "b", Weight: 1}}}, smaller: 1, answered: true,
			callers: [3]shape{{lane: 0, weight: 2}, {lane: 1, weight: 3}, {lane: 1, weight: 1}}, length: 7},
		{name: "reserve and cap", cfg: Config{Concurrency: 4, Lanes: []Lane{{Name: "a", Weight: 4, Cap: 0.5}, {Name: "b", Weight: 1, Reserve: 0.25}, {Name: "c", Weight: 1}}}, smaller: 2, answered: true,
			callers: [3]shape{{lane: 0, weight: 2}, {lane: 1, weight: 1}, {lane: 2, weight: 3}}, length: 8},
		{name: "cap", cfg: Config{Concurrency: 4, Lanes: []Lane{{Name: "a", Weight: 4, Cap: 0.5}, {Name: "b", Weight: 1}}}, smaller: 3,
			callers: [3]shape{{lane: 0, weight: 1}, {lane: 0, weight: 2}, {lane: 1, weight: 3}}, length: 7},
		{name: "breaker", cfg: Config{Concurrency: 2, Lanes: one, Breaker: breaker.Config{Failures: 0.5, Calls: 1, Window: time.Minute, Open: 500 * time.Millisecond}}, smaller: 1, answered: true,
			callers: [3]shape{{weight: 1}, {weight: 1, patient: true}, {weight: 2, patient: true}}, length: 7},
	}
	// scripts/verify makes the shorter ones longer.
	least, _ := strconv.Atoi(os.Getenv("METE_SEQUENCES"))
	for i := range trials {
		tr := &trials[i]
		tr.length = max(tr.length, least)
		t.Run(tr.name, func(t *testing.T) {
			begin := time.Now()
			tried := 0
			seen := map[string]int{} // how many sequences go on from a state
			// The first way on is taken by the pair at hand, every other one
			// by a new pair that repeats the way up to here. Ways that lead to
			// the same state go on from there alike, so one of them is taken.
			var explore func(p *pair) int
			explore = func(p *pair) (sequences int) {
				left := tr.length - len(p.log)
				if left == 0 {
					return 1
				}
				state := p.state(left)
				if n, ok := seen[state]; ok {
					return n
				}
				way := p.log
				for i, op := range p.enabled(nil) {
					next := p
					if i > 0 {
						next = tr.start()
						for _, o := range way {
							_ = next.do(o) // it went well before
						}
					}
					if err := next.do(op); err != nil {
						t.Fatalf("after %v: %v", next.log, err)
					}
					tried++
					sequences += explore(next)
				}
				seen[state] = sequences
				return sequences
			}
			n := explore(tr.start())
			t.Logf("%d sequences of %d operations: %d steps from %d states in %v", n, tr.length, tried, len(seen), time.Since(begin).Round(time.Millisecond))
		})
	}
}
