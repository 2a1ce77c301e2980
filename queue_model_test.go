package mete

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/breaker"
	"pgregory.net/rapid"
)

// model is a gate as slow and as plain as can be: lists, and everything is
// worked out anew from them whenever it is asked for. It knows one limit.
type model struct {
	now     time.Duration
	permits int64
	lanes   []modelLane
	held    []*modelCall
	vt      float64

	limit   Limit
	span    time.Duration // of a window
	charges []modelCharge

	closed   time.Duration // the pause ends then
	probing  bool
	probe    *modelCall
	opening  time.Duration // the ramp began then; -1 is none
	circuit  modelCircuit
	blocked  blockedBy
	finished []*modelCall // granted or refused since the last look
}

// modelCircuit is a breaker whose window is longer than any test.
type modelCircuit struct {
	breaker.Config
	results []bool // of calls that began since the last change: failed or not
	broken  bool   // open or half-open
	half    bool   // half-open
	until   time.Duration
	trial   *modelCall // the probe that is out
	changes int
}

func (c *modelCircuit) turn(broken bool) {
	c.broken, c.half, c.results, c.trial = broken, false, nil, nil
	c.changes++
}

// obstacle is what keeps a call from starting.
type obstacle int

const (
	byNothing obstacle = iota
	byPause
	byBreaker
	bySemaphore
	byLimit
)

type blockedBy [byLimit + 1]time.Duration

type modelLane struct {
	Lane
	vt    float64
	calls []*modelCall
}

type modelCall struct {
	id           int
	lane         int
	weight, cost int64
	patient      bool
	changes      int           // of the circuit when it began
	came, gives  time.Duration // gives up then; 0 is never
	before       blockedBy
	waits        blockedBy
	started      bool
	reason       Reason
}

type modelCharge struct {
	call *modelCall
	at   time.Duration
	n    int64
}

func (m *model) inUse(lane int) (n int64) {
	for _, c := range m.held {
		if lane < 0 || c.lane == lane {
			n += c.weight
		}
	}
	return n
}

func (m *model) reserve(lane int) int64 {
	return int64(math.Floor(m.lanes[lane].Reserve*float64(m.permits) + 1e-9))
}

func (m *model) cap(lane int) int64 {
	if c := m.lanes[lane].Cap; c > 0 && c < 1 {
		return max(1, int64(math.Floor(c*float64(m.permits)+1e-9)))
	}
	return math.MaxInt64
}

// room reports whether the permits for the call are there.
func (m *model) room(c *modelCall) bool {
	free := m.permits - m.inUse(-1)
	mine := m.inUse(c.lane) + c.weight
	if c.weight > free || mine > m.cap(c.lane) {
		return false
	}
	if mine <= m.reserve(c.lane) {
		return true
	}
	for l := range m.lanes {
		if l != c.lane {
			free -= max(0, m.reserve(l)-m.inUse(l))
		}
	}
	return c.weight <= free
}

func (m *model) hopeless(c *modelCall) bool {
	shared := m.permits
	for l := range m.lanes {
		if l != c.lane {
			shared -= m.reserve(l)
		}
	}
	return c.weight > max(shared, m.reserve(c.lane)) || c.weight > m.cap(c.lane)
}

// affordable reports whether the limit admits the cost at a time, if nothing
// is charged until then.
func (m *model) affordable(c *modelCall, at time.Duration) bool {
	if c.cost == 0 || m.limit.Per == 0 {
		return true
	}
	if m.limit.Bucket {
		level, last := m.limit.Burst*int64(m.limit.Per), time.Duration(0)
		most := level
		for _, x := range m.charges {
			level = min(most, level+m.limit.N*int64(x.at-last)) - x.n*int64(m.limit.Per)
			last = x.at
		}
		level = min(most, level+m.limit.N*int64(at-last))
		return level >= c.cost*int64(m.limit.Per)
	}
	used := int64(0)
	for _, x := range m.charges {
		if x.at > at-m.span {
			used += x.n
		}
	}
	return used+c.cost <= m.limit.N
}

// share is the part of the permits that the ramp lets be used.
func (m *model) share(at time.Duration) float64 {
	switch age := at - m.opening; {
	case m.opening < 0 || age >= 2*time.Second:
		return 1
	case age >= time.Second:
		return 0.5
	}
	return 0.25
}

// obstacle is what keeps the call from starting now.
func (m *model) obstacle(c *modelCall) obstacle {
	switch narrow := m.share(m.now); {
	case m.now < m.closed || m.probing && m.probe != nil:
		return byPause
	case m.circuit.broken && (m.now < m.circuit.until || m.circuit.trial != nil):
		return byBreaker
	case !m.room(c):
		return bySemaphore
	case narrow < 1 && len(m.held) > 0 && float64(m.inUse(-1)+c.weight) > math.Ceil(narrow*float64(m.permits)):
		return byPause
	case !m.affordable(c, m.now):
		if narrow < 1 {
			return byPause
		}
		return byLimit
	}
	return byNothing
}

// first is the call whose turn it is; nil if none waits.
func (m *model) first() *modelCall {
	var order []*modelCall
	for l := range m.lanes {
		if len(m.lanes[l].calls) > 0 {
			order = append(order, m.lanes[l].calls[0])
		}
	}
	slices.SortStableFunc(order, func(a, b *modelCall) int {
		switch x, y := m.lanes[a.lane].vt, m.lanes[b.lane].vt; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	under := slices.IndexFunc(order, func(c *modelCall) bool { return m.inUse(c.lane)+c.weight <= m.cap(c.lane) })
	if len(order) == 0 {
		return nil
	}
	head := order[max(under, 0)]
	if !m.room(head) {
		for _, c := range order {
			if m.inUse(c.lane)+c.weight <= m.reserve(c.lane) && m.room(c) {
				return c
			}
		}
	}
	return head
}

// settle starts whoever may start now, and then lets go whoever gives up.
func (m *model) settle() {
	for again := true; again; {
		for c := m.first(); c != nil && m.obstacle(c) == byNothing; c = m.first() {
			m.leave(c)
			m.held = append(m.held, c)
			l := &m.lanes[c.lane]
			l.vt = max(l.vt, m.vt)
			m.vt = l.vt
			l.vt += float64(c.weight) / l.Weight
			if c.cost > 0 {
				m.charges = append(m.charges, modelCharge{c, m.now, c.cost})
			}
			if m.probing {
				m.probe = c
			}
			if m.circuit.broken {
				if !m.circuit.half {
					m.circuit.turn(true)
					m.circuit.half = true
				}
				m.circuit.trial = c
			}
			c.changes = m.circuit.changes
			c.started = true
		}
		again = m.dismiss(func(c *modelCall) Reason {
			if c.gives > 0 && c.gives <= m.now {
				return WaitTimeout
			}
			return ""
		})
	}
}

func (m *model) dismiss(why func(*modelCall) Reason) (any bool) {
	for l := range m.lanes {
		for _, c := range slices.Clone(m.lanes[l].calls) {
			if r := why(c); r != "" {
				m.leave(c)
				c.reason, any = r, true
			}
		}
	}
	return any
}

func (m *model) leave(c *modelCall) {
	l := &m.lanes[c.lane]
	l.calls = slices.DeleteFunc(l.calls, func(o *modelCall) bool { return o == c })
	for b := range c.waits {
		c.waits[b] = m.blocked[b] - c.before[b]
	}
	m.finished = append(m.finished, c)
}

// pass lets time go by, from one instant at which anything can change to the
// next: it tries them all.
func (m *model) pass(d time.Duration) {
	for end := m.now + d; m.now < end; m.settle() {
		next := end
		consider := func(t time.Duration) {
			if t > m.now {
				next = min(next, t)
			}
		}
		consider(m.closed)
		consider(m.circuit.until)
		if m.opening >= 0 {
			consider(m.opening + time.Second)
			consider(m.opening + 2*time.Second)
		}
		for _, x := range m.charges {
			consider(x.at + m.span)
			if m.limit.Bucket { // a unit comes every Per/N, counted from some charge
				unit := m.limit.Per / time.Duration(m.limit.N)
				consider(m.now + unit - (m.now-x.at)%unit)
			}
		}
		for l := range m.lanes {
			for _, c := range m.lanes[l].calls {
				consider(c.gives)
			}
		}
		if c := m.first(); c != nil {
			m.blocked[m.obstacle(c)] += next - m.now
		}
		m.now = next
	}
}

func (m *model) acquire(c *modelCall) {
	c.came = m.now
	c.before = m.blocked
	l := &m.lanes[c.lane]
	if len(l.calls) == 0 {
		l.vt = max(l.vt, m.vt)
	}
	l.calls = append(l.calls, c)
	m.settle()
}

func (m *model) cancel(c *modelCall) {
	m.leave(c)
	c.reason = Canceled
	m.settle()
}

// judge tells how a call ended that is about to be released.
func (m *model) judge(c *modelCall, failed bool) {
	b := &m.circuit
	if b.Failures == 0 || c.changes != b.changes {
		return
	}
	trip := failed
	if !b.broken {
		b.results = append(b.results, failed)
		bad := 0
		for _, r := range b.results {
			if r {
				bad++
			}
		}
		trip = len(b.results) >= b.Calls && float64(bad) >= b.Failures*float64(len(b.results))
	} else if b.trial != c {
		return
	}
	switch {
	case trip:
		b.turn(true)
		b.until = m.now + b.Open
		m.dismiss(func(c *modelCall) Reason {
			if c.patient {
				return ""
			}
			return Breaker
		})
	case b.broken:
		b.turn(false)
	}
}

func (m *model) release(c *modelCall, refund, answered bool) {
	m.held = slices.DeleteFunc(m.held, func(o *modelCall) bool { return o == c })
	if refund {
		m.charges = slices.DeleteFunc(m.charges, func(x modelCharge) bool { return x.call == c })
	}
	if m.circuit.trial == c {
		m.circuit.trial = nil
	}
	if m.probe == c {
		m.probe = nil
		if answered && m.probing {
			m.probing, m.opening = false, m.now
		}
	}
	m.settle()
}

func (m *model) resize(permits int64) {
	m.permits = permits
	m.dismiss(func(c *modelCall) Reason {
		if m.hopeless(c) {
			return TooLarge
		}
		return ""
	})
	m.settle()
}

func (m *model) pause(d time.Duration) {
	if end := m.now + d; end > m.closed {
		m.closed, m.probing, m.probe, m.opening = end, true, nil, -1
		m.dismiss(func(c *modelCall) Reason {
			if c.gives > 0 && c.gives < end {
				return Paused
			}
			return ""
		})
	}
	m.settle()
}

// Random histories on a real gate: whatever is asked, cancelled, paused or
// changed, the permits are conserved at every step, no window at the wire holds
// more than was allowed, and nothing is left at the end.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed string
		script := rapid.SliceOfN(rapid.Uint64(), 1, 60).Draw(rt, "script")
		synctest.Test(t, func(t *testing.T) { failed = history(t, script) })
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}

// history makes one history, of which each number decides one step, and
// reports what was wrong with it.
func history(t *testing.T, script []uint64) (failed string) {
	choice := rand.New(rand.NewPCG(script[0], 0))
	pick := func(least, most int) int { return least + choice.IntN(most-least+1) }
	maybe := func() bool { return choice.IntN(2) == 0 }
	fail := func(format string, args ...any) { failed = fmt.Sprintf(format, args...) }
	limit := func() int64 { return int64(pick(1, 6)) }
	cfg := Config{Name: "random", Concurrency: 4, MaxWait: 20 * time.Second,
		Limits: []Limit{{Name: "window", N: limit(), Per: time.Second, Burst: 2},
			{Name: "tokens", Unit: "tokens", N: 10, Per: time.Second, Burst: 10, Bucket: true}},
		Lanes: []Lane{{Name: "a", Weight: 8}, {Name: "b", Reserve: 0.25}, {Name: "c", Cap: 0.5, MaxWait: 2 * time.Second}}}
	g, err := New(cfg)
	if err != nil {
		fail("%v", err)
	}
	highest := cfg.Limits[0].N // since the window was last added
	var mu sync.Mutex
	var wire []time.Time
	var held []*Permit
	weights, doubles := 0, int64(0)
	var cancels []context.CancelFunc
	var wg sync.WaitGroup
	acquire := func() {
		ctx, cancel := context.WithCancel(t.Context())
		if maybe() {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(pick(1, 3000))*time.Millisecond)
		}
		call := Call{Lane: []string{"a", "b", "c"}[pick(0, 2)], Weight: pick(0, 3),
			Wire: maybe(), Patient: maybe()}
		if maybe() {
			call.Costs = map[string]int64{"tokens": int64(pick(0, 11))}
		}
		cancels = append(cancels, cancel)
		wg.Go(func() {
			defer cancel()
			p, err := g.Acquire(ctx, call)
			var r *Rejected
			if err != nil && !errors.As(err, &r) {
				t.Errorf("refused with %v", err)
			}
			if err == nil {
				mu.Lock()
				held = append(held, p)
				weights += int(p.flight.weight)
				if !call.Wire {
					wire = append(wire, time.Now())
				}
				mu.Unlock()
			}
		})
	}
	end := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(held) == 0 {
			return
		}
		k := pick(0, len(held)-1)
		p, f := held[k], held[k].flight
		weight := int(f.weight)
		switch pick(0, 4) {
		case 0:
			if !f.clear() {
				wire = append(wire, time.Now())
			}
			p.Sent()
			return
		case 1:
			p.Settle(map[string]int64{"tokens": int64(pick(0, 15))})
			return
		case 2:
			if f.clear() || f.settled {
				p.Release() // a start that was made stays
			} else {
				p.Cancel()
			}
		default:
			p.Release()
		}
		if maybe() {
			p.Release()
			doubles++
		}
		weights -= weight
		held = append(held[:k:k], held[k+1:]...)
	}
	update := func() {
		cfg.Concurrency = pick(1, 6)
		cfg.Limits = append([]Limit{}, cfg.Limits[0])
		cfg.Limits[0].N = limit()
		highest = max(highest, cfg.Limits[0].N)
		if maybe() {
			cfg.Limits = append(cfg.Limits, Limit{Name: "tokens", Unit: "tokens", N: 10, Per: time.Second, Burst: 10, Bucket: true})
		}
		if err := g.Update(cfg); err != nil {
			fail("%v", err)
		}
	}
	push := func() {
		tries := g.Tries(t.Context(), Call{Patient: true})
		mu.Lock()
		defer mu.Unlock()
		if len(held) > 0 { // as if its answer had been a throttle
			tries.permit = held[0]
			tries.Again(Outcome{Err: errPushedBack, Throttled: true, Hinted: true, RetryAfter: time.Duration(pick(0, 3000)) * time.Millisecond})
		}
	}
	for _, n := range script {
		if failed != "" {
			break
		}
		choice = rand.New(rand.NewPCG(n, 0))
		switch k := pick(0, 19); {
		case k < 7:
			acquire()
		case k < 13:
			end()
		case k < 15 && len(cancels) > 0:
			cancels[pick(0, len(cancels)-1)]()
		case k == 15:
			update()
		case k == 16:
			g.Pause(time.Duration(pick(0, 2000)) * time.Millisecond)
		case k == 17:
			push()
		default:
			time.Sleep(time.Duration(pick(1, 900)) * time.Millisecond)
		}
		synctest.Wait()
		mu.Lock()
		if s := g.Stats(); s.InUse != weights || s.Misuse != doubles {
			fail("in use %d, held %d; misuse %d of %d", s.InUse, weights, s.Misuse, doubles)
		}
		mu.Unlock()
	}
	for _, cancel := range cancels {
		cancel()
	}
	wg.Wait()
	for _, p := range held {
		p.Release()
	}
	if n := most(wire, time.Second); n > int(highest) {
		fail("%d starts in a second at a limit of at most %d", n, highest)
	}
	if s := g.Stats(); s.InUse != 0 || s.Waiting != 0 || g.timer != nil {
		fail("left behind: in use %d, waiting %d, timer %v", s.InUse, s.Waiting, g.timer != nil)
	}
	time.Sleep(3 * time.Minute) // longer than any pause
	if p, ok := g.TryAcquire(Call{}); !ok {
		fail("nothing starts 3 minutes later")
	} else {
		p.Release()
	}
	return failed
}

// Real goroutines and the real clock: nothing is lost or counted twice
// whatever comes together (agronholm/anyio#947, llm-d/llm-d-batch-gateway#206).
func TestManyGoroutines(t *testing.T) {
	g := newGate(t, Config{Concurrency: 8, MaxWait: -1, Lanes: []Lane{{Name: "a", Weight: 8}, {Name: "b", Reserve: 0.25}},
		Limits: []Limit{{Name: "window", N: 1e9, Per: time.Second, Burst: 1e9}}})
	var inUse, peak, misuse atomic.Int64
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			for n := range 4096 {
				call := Call{Lane: []string{"a", "b"}[rnd.IntN(2)], Weight: 1 + rnd.IntN(3), Wire: rnd.IntN(2) == 0}
				ctx, cancel := context.Background(), func() {}
				if rnd.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(50))*time.Microsecond)
				}
				var p *Permit
				if rnd.IntN(4) == 0 {
					p, _ = g.TryAcquire(call)
				} else {
					p, _ = g.Acquire(ctx, call)
				}
				cancel()
				if p == nil {
					p.Release()
					continue
				}
				weight := p.flight.weight
				if n := inUse.Add(weight); n > peak.Load() {
					peak.Store(n)
				}
				if rnd.IntN(2) == 0 {
					runtime.Gosched()
				}
				inUse.Add(-weight)
				switch rnd.IntN(4) {
				case 0:
					p.Sent()
					p.Release()
				case 1:
					p.Cancel()
				case 2:
					var both sync.WaitGroup
					both.Go(p.Release)
					both.Go(p.Cancel)
					both.Wait()
					misuse.Add(1)
				default:
					p.Settle(map[string]int64{Requests: 2})
					p.Release()
				}
				if n%512 == 511 {
					cfg := *g.cfg.Load()
					cfg.Concurrency = 4 + rnd.IntN(5)
					_ = g.Update(cfg)
				}
			}
		})
	}
	wg.Wait()
	s := g.Stats()
	if s.InUse != 0 || s.Waiting != 0 || s.Misuse != misuse.Load() || inUse.Load() != 0 || peak.Load() > 8 {
		t.Errorf("%+v; misuse %d, peak %d", s, misuse.Load(), peak.Load())
	}
	if _, ok := g.TryAcquire(Call{Weight: 3}); !ok {
		t.Error("nothing is free at the end")
	}
}
