package batch

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// keyed is MapBy: the key of an item is item % gates.
func keyed(ctx context.Context, gates, permits int, in iter.Seq[int], call func(context.Context, int, int) (int, error), opts ...Option) iter.Seq[Result[int, int]] {
	j := job[int, int, int]{
		options: newOptions(opts),
		key:     func(i int) int { return i % gates },
		limit:   func(int) int { return permits },
		call:    call,
	}
	return func(yield func(Result[int, int]) bool) { j.run(ctx, in, yield) }
}

// sidekiq/sidekiq#4744, grafana/agent#5751: one throttled host occupied all
// workers.
func TestPausedGateDoesNotHoldTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 100 rows of the slow host, then 100 of the fast one.
		in := func(yield func(int) bool) {
			for i := range 200 {
				if !yield(i / 100) {
					return
				}
			}
		}
		var slow, peak atomic.Int64
		begun := time.Now()
		var fast int
		for r := range keyed(t.Context(), 2, 10, in, func(ctx context.Context, gate, _ int) (int, error) {
			if gate == 0 {
				if k := slow.Add(1); k > peak.Load() {
					peak.Store(k)
				}
				defer slow.Add(-1)
				time.Sleep(time.Minute)
			} else {
				time.Sleep(100 * time.Millisecond)
			}
			return 0, nil
		}) {
			if r.In == 1 {
				fast++
				if at := time.Since(begun); at > time.Second {
					t.Errorf("a fast row after %v", at)
				}
			}
		}
		if fast != 100 || peak.Load() != 10 {
			t.Errorf("%d fast rows, %d slow ones at once; want 100 and 10", fast, peak.Load())
		}
	})
}

func TestLookAheadOverGatesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var read int
		in := func(yield func(int) bool) {
			for i := range 100_000 {
				read++
				if !yield(i) {
					return
				}
			}
		}
		go func() {
			time.Sleep(time.Second)
			synctest.Wait()
			if want := 10 + 50 + 1; read != want {
				t.Errorf("%d items were read, want %d", read, want)
			}
			close(release)
		}()
		n := 0
		// Every item has a gate of its own, and none of them goes on.
		for range keyed(t.Context(), 1<<30, 10, in, func(context.Context, int, int) (int, error) {
			<-release
			return 0, nil
		}, LookAhead(50)) {
			n++
		}
		if n != 100_000 {
			t.Errorf("%d results", n)
		}
	})
}

func TestGatesAreForgotten(t *testing.T) {
	j := job[int, int, int]{
		options: newOptions([]Option{LookAhead(10)}),
		key:     func(i int) int { return i },
		limit:   func(int) int { return 2 },
		call:    func(context.Context, int, int) (int, error) { return 0, nil },
	}
	s := newStream(t.Context(), j)
	defer s.cancel()
	for i := range 1000 {
		s.queueOf(i)
	}
	if len(s.queues) > 2*s.bound+1 {
		t.Errorf("%d queues are kept", len(s.queues))
	}
}

func TestWorkersFollowTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var permits, now, peak atomic.Int64
		permits.Store(2)
		j := job[int, int, int]{
			options: newOptions(nil),
			key:     func(int) int { return 0 },
			limit:   func(int) int { return int(permits.Load()) },
			call: func(ctx context.Context, _, n int) (int, error) {
				if k := now.Add(1); k > peak.Load() {
					peak.Store(k)
				}
				defer now.Add(-1)
				time.Sleep(time.Second)
				return n, nil
			},
		}
		n := 0
		j.run(t.Context(), count(2000), func(Result[int, int]) bool {
			if n++; n == 500 {
				permits.Store(7)
			}
			if n == 499 && peak.Load() != 2 {
				t.Errorf("peak %d before, want 2", peak.Load())
			}
			return true
		})
		if peak.Load() != 7 {
			t.Errorf("peak %d after, want 7", peak.Load())
		}
	})
}

func TestGatesTakeTurns(t *testing.T) {
	var open fifo[string, int, int]
	for i, name := range []string{"a", "b", "c"} {
		q := &queue[string, int, int]{key: name, workers: 2 + i}
		for range 3 {
			q.ready.push(&cell[string, int, int]{queue: q})
		}
		open.add(q)
		open.add(q) // is listed already
	}
	order := ""
	for c := open.take(); c != nil; c = open.take() {
		order += c.queue.key
	}
	if order != "abcabcbc" {
		t.Errorf("order %q", order)
	}
}

// A queue that still has something to do is not forgotten: another one for the
// same gate would have workers of its own.
func TestBusyGatesAreKept(t *testing.T) {
	j := job[int, int, int]{
		options: newOptions([]Option{LookAhead(10)}),
		key:     func(i int) int { return i },
		limit:   func(int) int { return 2 },
	}
	s := newStream(t.Context(), j)
	defer s.cancel()
	waits, runs := s.queueOf(0), s.queueOf(1)
	waits.ready.push(&cell[int, int, int]{queue: waits})
	runs.running = 1
	for i := range 1000 {
		s.queueOf(2 + i)
	}
	if s.queueOf(0) != waits || s.queueOf(1) != runs {
		t.Error("a queue with an item was forgotten")
	}
}

// When a gate is found to have more permits, what waits already takes them,
// even if there is no room to read any further.
func TestRaisedGateTakesWhatWaits(t *testing.T) {
	for _, c := range []struct {
		opts  []Option
		quick int // calls that end at once, to come to the 64th item
	}{
		{[]Option{Ordered(resize - 1)}, 0}, // no more room, and no call ends
		{[]Option{LookAhead(0)}, resize - 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var running, asked atomic.Int64
			j := job[int, int, int]{
				options: newOptions(c.opts),
				key:     func(int) int { return 0 },
				limit: func(int) int {
					if asked.Add(1) == 1 {
						return 2
					}
					return 7
				},
				call: func(_ context.Context, _, n int) (int, error) {
					if n < c.quick {
						return n, nil
					}
					running.Add(1)
					defer running.Add(-1)
					time.Sleep(time.Hour)
					return n, nil
				},
			}
			time.AfterFunc(time.Minute, func() {
				synctest.Wait()
				if n := running.Load(); n != 7 {
					t.Errorf("%d calls run a minute after the gate was raised from 2 to 7", n)
				}
			})
			in := func(yield func(int) bool) {
				for i := range resize + 20 {
					if i == resize-1 {
						time.Sleep(time.Second) // all before wait or run
					}
					if !yield(i) {
						return
					}
				}
			}
			n := 0
			j.run(t.Context(), in, func(Result[int, int]) bool { n++; return true })
			if n != resize+20 {
				t.Errorf("%d results", n)
			}
		})
	}
}
