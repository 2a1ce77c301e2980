package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/semaphore"
)

// model is the semaphore as its documentation tells it, slow and without
// concurrency.
type model struct {
	limit    int64
	held     []*call
	line     []*call
	misuse   uint64
	timeouts uint64
	canceled uint64
}

// call is one caller, seen from the model and from the semaphore.
type call struct {
	n      int64
	want   error // what it must have got once settled
	done   bool
	cancel context.CancelFunc // nil if it cannot give up
	until  time.Time          // of its longest wait; zero is none
	result chan result
	permit semaphore.Permit
}

func (m *model) inUse() (n int64) {
	for _, c := range m.held {
		n += c.n
	}
	return n
}

func (m *model) grant() {
	for len(m.line) > 0 && m.inUse()+m.line[0].n <= m.limit {
		m.line[0].done = true
		m.held = append(m.held, m.line[0])
		m.line = m.line[1:]
	}
}

func (m *model) drop(c *call, err error) {
	m.line = slices.DeleteFunc(m.line, func(x *call) bool { return x == c })
	c.done, c.want = true, err
}

// Any sequence of operations gives what the model gives, after each step.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without the Deadline method, which a bubble does not allow.
		rapid.Check(struct{ rapid.TB }{t}, checkModel)
	})
}

func checkModel(t *rapid.T) {
	m := &model{limit: rapid.Int64Range(0, 6).Draw(t, "limit")}
	s := semaphore.New(m.limit)
	var calls, released []*call
	defer func() {
		s.Resize(semaphore.MaxLimit) // nobody stays in line
		for _, c := range calls {
			if c.cancel != nil {
				c.cancel()
			}
			if c.result != nil {
				r := <-c.result
				r.p.Release()
			}
		}
	}()
	weight := rapid.Int64Range(-1, 4)
	start := func(t *rapid.T, stays bool, within time.Duration) {
		c := &call{n: weight.Draw(t, "n"), result: make(chan result, 1)}
		ctx := context.Background()
		if !stays {
			ctx, c.cancel = context.WithCancel(ctx)
		}
		calls = append(calls, c)
		switch {
		case c.n <= 0:
			c.done, c.want = true, semaphore.ErrWeight
		case c.n > m.limit:
			c.done, c.want = true, semaphore.ErrTooLarge
		default:
			m.line = append(m.line, c)
			m.grant()
			if within == 0 && !c.done {
				m.drop(c, semaphore.ErrWaitTimeout)
				m.timeouts++
			}
		}
		if within > 0 {
			c.until = time.Now().Add(within)
		}
		go func() {
			var p semaphore.Permit
			var err error
			if within < 0 {
				p, err = s.Acquire(ctx, c.n)
			} else {
				p, err = s.AcquireWithin(ctx, c.n, within)
			}
			c.result <- result{p, err}
		}()
	}
	t.Repeat(map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) { start(t, false, -1) },
		"stay":    func(t *rapid.T) { start(t, true, -1) },
		"within":  func(t *rapid.T) { start(t, false, time.Duration(rapid.IntRange(0, 3).Draw(t, "s"))*time.Second) },
		"try": func(t *rapid.T) {
			c := &call{n: weight.Draw(t, "n"), done: true}
			want := c.n > 0 && len(m.line) == 0 && m.inUse()+c.n <= m.limit
			p, ok := s.TryAcquire(c.n)
			if ok != want {
				t.Fatalf("TryAcquire(%d) = %v", c.n, ok)
			}
			if c.permit = p; ok {
				m.held = append(m.held, c)
			}
		},
		"release": func(t *rapid.T) {
			if len(m.held) == 0 {
				return
			}
			i := rapid.IntRange(0, len(m.held)-1).Draw(t, "which")
			c := m.held[i]
			m.held = slices.Delete(m.held, i, i+1)
			released = append(released, c)
			c.permit.Release()
			m.grant()
		},
		"release again": func(t *rapid.T) {
			if len(released) == 0 {
				return
			}
			released[rapid.IntRange(0, len(released)-1).Draw(t, "which")].permit.Release()
			m.misuse++
		},
		"cancel": func(t *rapid.T) {
			if len(m.line) == 0 {
				return
			}
			c := m.line[rapid.IntRange(0, len(m.line)-1).Draw(t, "which")]
			if c.cancel == nil {
				return
			}
			m.drop(c, context.Canceled)
			m.canceled++
			m.grant()
			c.cancel()
		},
		"time": func(t *rapid.T) {
			// Half a second, so that no two things fall together.
			time.Sleep(500 * time.Millisecond)
			for now := time.Now(); ; {
				i := slices.IndexFunc(m.line, func(c *call) bool { return !c.until.IsZero() && !c.until.After(now) })
				if i < 0 {
					return
				}
				m.drop(m.line[i], semaphore.ErrWaitTimeout)
				m.timeouts++
				m.grant()
			}
		},
		"resize": func(t *rapid.T) {
			m.limit = rapid.Int64Range(0, 8).Draw(t, "limit")
			for _, c := range slices.Clone(m.line) {
				if c.n > m.limit {
					m.drop(c, semaphore.ErrTooLarge)
				}
			}
			m.grant()
			s.Resize(m.limit)
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			want := semaphore.Stats{Limit: m.limit, InUse: m.inUse(), Waiting: len(m.line),
				Misuse: m.misuse, Timeouts: m.timeouts, Canceled: m.canceled}
			if got := s.Stats(); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
			for i, c := range calls {
				if c.result == nil {
					continue
				}
				select {
				case r := <-c.result:
					c.result, c.permit = nil, r.p
					if !c.done || !errors.Is(r.err, c.want) {
						t.Fatalf("call %d: %v, want done %v with %v", i, r.err, c.done, c.want)
					}
				default:
					if c.done {
						t.Fatalf("call %d must be done with %v", i, c.want)
					}
				}
			}
		},
	})
}

// Everything at once, from many goroutines: the limit holds at every instant
// and nothing is lost.
func TestStorm(t *testing.T) {
	const workers, rounds = 16, 4000 // 64,000 operations
	const most = 12
	s := semaphore.New(8)
	var used atomic.Int64
	var misuse atomic.Uint64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			var old semaphore.Permit
			for range rounds {
				n := 1 + rnd.Int64N(3)
				if rnd.IntN(2) == 0 {
					n = 1
				}
				var p semaphore.Permit
				ok := true
				switch rnd.IntN(8) {
				case 0:
					p, ok = s.TryAcquire(n)
				case 1:
					var err error
					p, err = s.AcquireWithin(context.Background(), n, time.Duration(rnd.IntN(20))*time.Microsecond)
					ok = err == nil
				case 2, 3:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(50))*time.Microsecond)
					var err error
					p, err = s.Acquire(ctx, n)
					ok = err == nil
					cancel()
				case 4:
					s.Resize(3 + rnd.Int64N(most-2))
					continue
				case 5:
					if old.Weight() > 0 {
						old.Release()
						misuse.Add(1)
					}
					continue
				default:
					var err error
					p, err = s.Acquire(context.Background(), n)
					ok = err == nil // the limit is never below n
					if !ok {
						t.Error(err)
					}
				}
				if !ok {
					p.Release()
					continue
				}
				if u := used.Add(n); u > most {
					t.Errorf("%d in use", u)
				}
				if st := s.Stats(); st.InUse < n || st.InUse > most {
					t.Errorf("%+v while %d are held", st, n)
				}
				used.Add(-n)
				if old = p; rnd.IntN(8) == 0 {
					var twice sync.WaitGroup
					twice.Go(p.Release)
					twice.Go(p.Release)
					twice.Wait()
					misuse.Add(1)
				} else {
					p.Release()
				}
			}
		})
	}
	all.Wait()
	if st := s.Stats(); st.InUse != 0 || st.Waiting != 0 || st.Misuse != misuse.Load() {
		t.Fatalf("%+v, want %d misuses", st, misuse.Load())
	}
	s.Resize(100)
	if _, ok := s.TryAcquire(100); !ok {
		t.Fatal("permits were lost")
	}
}

// A thousand permits held at once in random order: the slots grow under them.
func TestManyPermits(t *testing.T) {
	s := semaphore.New(5000)
	held := make([]semaphore.Permit, 0, 5000)
	for range 5000 {
		held = append(held, must(t, s, 1))
	}
	rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	for round := range 20_000 {
		i := round % len(held)
		held[i].Release()
		old := held[i]
		held[i] = must(t, s, 1)
		if round%100 == 0 {
			old.Release()
		}
	}
	if st := s.Stats(); st.InUse != 5000 || st.Misuse != 200 {
		t.Fatalf("%+v", st)
	}
	for _, p := range held {
		p.Release()
	}
	counts(t, s, 0, 0)
}

// Whoever waits is woken once, by the grant: a thousand releases serve a
// thousand waiters in order.
func TestOneWakePerGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		p := must(t, s, 1)
		var woken atomic.Int64
		next := make(chan semaphore.Permit, 1)
		for i := range 1000 {
			ctx := t.Context()
			if i%3 == 0 {
				ctx = context.Background()
			}
			go func() {
				p, _ := s.Acquire(ctx, 1)
				woken.Add(1)
				next <- p
			}()
		}
		synctest.Wait()
		for i := range int64(1000) {
			p.Release()
			synctest.Wait()
			if woken.Load() != i+1 || s.Stats().Waiting != int(999-i) {
				t.Fatalf("%d woken after %d releases", woken.Load(), i+1)
			}
			p = <-next
		}
		p.Release()
	})
}
