package mete

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// hold keeps n permits of a lane in use until the test lets them go.
func hold(t testing.TB, g *Gate, lane string, n int) []*Permit {
	t.Helper()
	var held []*Permit
	for range n {
		p, ok := g.TryAcquire(Call{Lane: lane})
		if !ok {
			t.Fatalf("lane %s got %d of %d permits", lane, len(held), n)
		}
		held = append(held, p)
	}
	return held
}

// queued asks for a permit in the background and returns once it queues or has
// been granted. The permit or the error comes on the channels.
func queued(t testing.TB, g *Gate, call Call) (<-chan *Permit, <-chan error) {
	granted, failed := make(chan *Permit, 1), make(chan error, 1)
	go func() {
		p, err := g.Acquire(t.Context(), call)
		if err != nil {
			failed <- err
		} else {
			granted <- p
		}
	}()
	synctest.Wait()
	return granted, failed
}

// started reports whether the call was granted by now.
func started(c <-chan *Permit) *Permit {
	synctest.Wait()
	select {
	case p := <-c:
		return p
	default:
		return nil
	}
}

func TestPermitsAreSharedByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 9, Lanes: []Lane{{Name: "big", Weight: 8}, {Name: "small"}}})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		done := map[string]int{}
		var wg sync.WaitGroup
		for _, lane := range []string{"big", "small"} {
			for range 30 {
				wg.Go(func() {
					for Do(ctx, g, Call{Lane: lane}, func(context.Context) error {
						time.Sleep(100 * time.Millisecond)
						return nil
					}) == nil {
						mu.Lock()
						done[lane]++
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(100 * time.Second)
		cancel()
		wg.Wait()
		// Up to a round of the nine permits may be counted to either side at the end.
		if n := done["big"] + done["small"]; n < 8990 || done["big"] < 8*done["small"]-72 || done["big"] > 8*done["small"]+72 {
			t.Errorf("done %v", done)
		}
		idle(t, g)
	})
}

// A lane's reserve is its own, also while a heavy call of another lane waits
// at the head, and the heavy call is not starved by light ones that would fit
// (golang/go#56910, NVIDIA/cccl#450).
func TestReserveAndHeavyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 10, Lanes: []Lane{{Name: "bulk", Weight: 100}, {Name: "urgent", Reserve: 0.2}, {Name: "other"}}})
		hold(t, g, "other", 1)[0].Release() // it has had its share
		held := hold(t, g, "bulk", 8)
		if _, ok := g.TryAcquire(Call{Lane: "bulk"}); ok {
			t.Error("bulk has taken what is reserved")
		}
		heavy, _ := queued(t, g, Call{Lane: "bulk", Weight: 8})
		light, _ := queued(t, g, Call{Lane: "other"})
		u1, _ := queued(t, g, Call{Lane: "urgent"})
		u2, _ := queued(t, g, Call{Lane: "urgent"})
		p1, p2 := started(u1), started(u2)
		if p1 == nil || p2 == nil {
			t.Fatal("the reserve is not there for its lane")
		}
		p1.Release()
		p2.Release()
		// Seven of bulk come back; the light call of the third lane does not
		// take them from the heavy one, the reserve stays usable meanwhile.
		for _, p := range held[:7] {
			p.Release()
			u, _ := queued(t, g, Call{Lane: "urgent"})
			p := started(u)
			if p == nil {
				t.Fatal("the reserve is not there for its lane")
			}
			p.Release()
		}
		if started(heavy) != nil || started(light) != nil {
			t.Fatal("granted too early")
		}
		held[7].Release()
		p := started(heavy)
		if p == nil {
			t.Fatal("the heavy call starves")
		}
		if started(light) != nil {
			t.Error("the light call has taken what is reserved")
		}
		p.Release()
		p = started(light)
		p.Release()
		idle(t, g)
	})
}

// Light calls keep coming; the heavy one is in after those that hold permits
// now (golang/go#56910).
func TestHeavyCallIsNotStarvedByLightOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 10, Lanes: []Lane{{Name: "light", Weight: 8}, {Name: "heavy"}, {Name: "urgent", Reserve: 0.2}}})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				for Do(ctx, g, Call{Lane: "light"}, func(context.Context) error {
					time.Sleep(50 * time.Millisecond)
					return nil
				}) == nil {
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		if err := Do(ctx, g, Call{Lane: "heavy", Weight: 8}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 200*time.Millisecond {
			t.Errorf("the heavy call waited %v", d)
		}
		cancel()
		wg.Wait()
		idle(t, g)
	})
}

// A lane at its cap keeps nobody back but itself, whatever its next call weighs.
func TestCapHoldsOnlyItsOwnLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 8, Lanes: []Lane{{Name: "capped", Weight: 100, Cap: 0.75}, {Name: "free"}}})
		hold(t, g, "free", 1)[0].Release() // it has had its share
		held := hold(t, g, "capped", 6)
		heavy, _ := queued(t, g, Call{Lane: "capped", Weight: 3})
		free, _ := queued(t, g, Call{Lane: "free"})
		p := started(free)
		if p == nil {
			t.Fatal("a lane waits for the cap of another")
		}
		for i, h := range held {
			if started(heavy) != nil {
				t.Errorf("above the cap after %d releases", i)
			}
			h.Release()
			if i == 2 {
				break
			}
		}
		q := started(heavy)
		if q == nil {
			t.Fatal("not granted within the cap")
		}
		for _, p := range append(held[3:], p, q) {
			p.Release()
		}
		idle(t, g)
	})
}

// A share of few permits is rounded so that no lane is shut out, and a call
// that its lane can never have room for is refused at once, not after MaxWait.
func TestSharesOfFewPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Lanes: []Lane{{Name: "a", Reserve: 0.5}, {Name: "b", Cap: 0.1}}})
		p, ok := g.TryAcquire(Call{Lane: "b"})
		if !ok {
			t.Fatal("half a permit in reserve shuts the other lane out")
		}
		p.Release()
		if err := g.Update(Config{Concurrency: 10, Lanes: []Lane{{Name: "a", Reserve: 0.3}, {Name: "b"}}}); err != nil {
			t.Fatal(err)
		}
		for weight, want := range map[int]error{7: nil, 8: ErrTooLarge} {
			p, err := g.Acquire(t.Context(), Call{Lane: "b", Weight: weight})
			if !errors.Is(err, want) {
				t.Errorf("weight %d: %v", weight, err)
			}
			p.Release()
		}
		p, err := g.Acquire(t.Context(), Call{Lane: "a", Weight: 10})
		if err != nil {
			t.Error(err)
		}
		p.Release()
		// 0.29 * 100 is 28.999999999999996.
		if err := g.Update(Config{Concurrency: 100, Lanes: []Lane{{Name: "a", Cap: 0.29}, {Name: "b", Reserve: 0.71}}}); err != nil {
			t.Fatal(err)
		}
		for _, p := range hold(t, g, "a", 29) {
			p.Release()
		}
		idle(t, g)
	})
}

// A lane that an update has removed reserves nothing and takes nobody in, and
// those that wait in it are still served.
func TestRemovedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 2, Lanes: []Lane{{Name: "a"}, {Name: "old", Reserve: 0.5}}})
		held := append(hold(t, g, "old", 1), hold(t, g, "a", 1)...)
		waits, _ := queued(t, g, Call{Lane: "old"})
		if err := g.Update(Config{Concurrency: 4, Lanes: []Lane{{Name: "a"}}}); err != nil {
			t.Fatal(err)
		}
		if p := started(waits); p == nil {
			t.Error("the waiter of the removed lane is forgotten")
		} else {
			p.Release()
		}
		if _, err := g.Acquire(t.Context(), Call{Lane: "old"}); !errors.Is(err, ErrInvalidCall) {
			t.Errorf("a removed lane: %v", err)
		}
		held = append(held, hold(t, g, "a", 2)...) // one would be in reserve
		for _, p := range held {
			p.Release()
		}
		for _, p := range hold(t, g, "a", 4) {
			p.Release()
		}
		idle(t, g)
	})
}

func TestLaneBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: time.Minute, MaxQueue: 3, Lanes: []Lane{
			{Name: "a"}, {Name: "b", MaxQueue: 1, MaxWait: 2 * time.Second},
		}})
		held := hold(t, g, "a", 1)
		start := time.Now()
		_, first := queued(t, g, Call{Lane: "b"})
		if _, err := g.Acquire(t.Context(), Call{Lane: "b"}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("second in b: %v", err)
		}
		a1, _ := queued(t, g, Call{Lane: "a"})
		a2, _ := queued(t, g, Call{Lane: "a"})
		if _, err := g.Acquire(t.Context(), Call{Lane: "a"}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("fourth: %v", err)
		}
		if err := <-first; !errors.Is(err, ErrWaitTimeout) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		held[0].Release()
		(<-a1).Release()
		(<-a2).Release()
		idle(t, g)
	})
}

// A patience that an update has lowered holds for those who come, however long
// those before them still wait.
func TestShorterPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, MaxWait: time.Minute})
		held := hold(t, g, "", 1)
		start := time.Now()
		_, long := queued(t, g, Call{})
		if err := g.Update(Config{Concurrency: 1, MaxWait: time.Second}); err != nil {
			t.Fatal(err)
		}
		_, short := queued(t, g, Call{})
		if err := <-short; !errors.Is(err, ErrWaitTimeout) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := <-long; !errors.Is(err, ErrWaitTimeout) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		held[0].Release()
		idle(t, g)
	})
}

// A wait that takes exactly as long as it may is not a time-out.
func TestGrantInTheLastInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := Limit{N: 1, Per: time.Second, Burst: 1, Bucket: true}
		g := newGate(t, Config{Limits: []Limit{limit}, MaxWait: time.Second})
		if take(g) != 1 {
			t.Fatal("nothing is free")
		}
		start := time.Now()
		p, err := g.Acquire(t.Context(), Call{})
		if err != nil || time.Since(start) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		p.Release()
		idle(t, g)
	})
}

// No waiter is passed by more than its lane's weight allows. While it waits
// with A permits of its lane ahead of it or owed by the lane, lane j starts at
// most W_j/W_i * A + the heaviest call of j, because stride scheduling serves
// j only while its virtual time is not above that of lane i (Waldspurger and
// Weihl, 1995).
func TestStarvationIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const heaviest = 4
		weights := []float64{1, 2, 8}
		g, err := New(Config{Concurrency: rapid.IntRange(heaviest, 9).Draw(t, "permits"),
			Lanes: []Lane{{Name: "a", Weight: weights[0]}, {Name: "b", Weight: weights[1]}, {Name: "c", Weight: weights[2]}}})
		if err != nil {
			t.Fatal(err)
		}
		q := &g.q
		type entry struct {
			w      *waiter
			passed [3]int64
			bound  [3]float64
		}
		index := map[*lane]int{q.lanes[0]: 0, q.lanes[1]: 1, q.lanes[2]: 2}
		var waiting []*entry
		var held []*flight
		serve := func() {
			for q.waiting > 0 {
				h := q.head()
				if b, _ := q.check(0, h.lane, h.weight, nil); b != noBound {
					return
				}
				q.remove(h)
				q.grant(0, h.flight)
				held = append(held, h.flight)
				j := index[h.lane]
				for k, e := range waiting {
					if e.w == h {
						for lane, n := range e.passed {
							if lane != j && float64(n) > e.bound[lane] {
								t.Fatalf("%d permits of lane %d before a waiter of lane %d, bound %.1f", n, lane, j, e.bound[lane])
							}
						}
						waiting = append(waiting[:k:k], waiting[k+1:]...)
						break
					}
				}
				for _, e := range waiting {
					e.passed[j] += h.weight
				}
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "release") {
				k := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				q.release(0, held[k], false)
				held = append(held[:k:k], held[k+1:]...)
			} else {
				l := q.lanes[rapid.IntRange(0, 2).Draw(t, "lane")]
				weight := rapid.Int64Range(1, heaviest).Draw(t, "weight")
				ahead := max(l.vt-q.vt, 0) * l.Weight
				for w := l.first; w != nil; w = w.next {
					ahead += float64(w.weight)
				}
				e := &entry{w: &waiter{lane: l, weight: weight, flight: &flight{lane: l, weight: weight}}}
				for j := range weights {
					e.bound[j] = weights[j]/l.Weight*ahead + heaviest + 1e-6
				}
				waiting = append(waiting, e)
				q.enqueue(e.w, false)
			}
			serve()
		}
	})
}
