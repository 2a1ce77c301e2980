package mete

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquireAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		global := newGate(t, Config{Name: "global", Concurrency: 10, Limits: []Limit{Per(10, time.Second)}})
		host := newGate(t, Config{Name: "host", Concurrency: 1, MaxWait: 2 * time.Second})
		held, _ := host.TryAcquire(Call{})
		start := time.Now()
		_, err := AcquireAll(t.Context(), At{global, Call{}}, At{host, Call{}})
		var r *Rejected
		if !errors.As(err, &r) || r.Gate != "host" || r.Reason != WaitTimeout || time.Since(start) != 2*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if s := global.Stats(); s.InUse != 0 || s.Limits[0].Free != 10 {
			t.Errorf("the other gate has %d in use, %d free", s.InUse, s.Limits[0].Free)
		}
		time.AfterFunc(time.Second, held.Release)
		start = time.Now()
		ps, err := AcquireAll(t.Context(), At{global, Call{}}, At{host, Call{}})
		if err != nil || time.Since(start) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if global.Stats().InUse != 1 || host.Stats().InUse != 1 {
			t.Error("not both are held")
		}
		ps.Release()
		ps, err = AcquireAll(t.Context(), At{host, Call{}}, At{global, Call{}})
		if err != nil {
			t.Fatal(err)
		}
		ps.Cancel()
		if _, err := AcquireAll(t.Context(), At{host, Call{}}, At{host, Call{}}); !errors.Is(err, ErrNested) {
			t.Errorf("one gate twice: %v", err)
		}
		err = Do(t.Context(), host, Call{}, func(ctx context.Context) error {
			_, err := AcquireAll(ctx, At{global, Call{}}, At{host, Call{}})
			return err
		})
		if !errors.Is(err, ErrNested) {
			t.Errorf("nested: %v", err)
		}
		idle(t, global)
		idle(t, host)
	})
}

// Callers that name the gates in any order neither deadlock nor starve, and no
// limit is passed.
func TestAcquireAllInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gates []*Gate
		for i := range 3 {
			gates = append(gates, newGate(t, Config{Name: fmt.Sprint(i), Concurrency: i + 1, MaxWait: -1, Limits: []Limit{Per(int64(20+10*i), time.Second)}}))
		}
		var mu sync.Mutex
		var starts [3][]time.Time
		var wg sync.WaitGroup
		for n := range 300 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
				var at []At
				for _, i := range rng.Perm(3)[:1+rng.IntN(3)] {
					at = append(at, At{gates[i], Call{}})
				}
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == 0 {
					time.AfterFunc(time.Duration(rng.IntN(1000))*time.Millisecond, cancel)
				}
				defer cancel()
				ps, err := AcquireAll(ctx, at...)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				for _, a := range at {
					for i, g := range gates {
						if g == a.Gate {
							starts[i] = append(starts[i], time.Now())
						}
					}
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				ps.Release()
			})
		}
		begun := time.Now()
		wg.Wait()
		for i, at := range starts {
			if n := most(at, time.Second); n > 20+10*i {
				t.Errorf("gate %d: %d starts in a second", i, n)
			}
		}
		// The narrowest gate has 20/s for about 200 of the calls.
		if d := time.Since(begun); d > 16*time.Second {
			t.Errorf("took %v", d)
		}
		for _, g := range gates {
			idle(t, g)
		}
	})
}

// The age of a call is its place at every gate: one that waited for the first is
// not behind those who came to the second meanwhile, nor does it pass by those
// who were there before.
func TestAcquireAllKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newGate(t, Config{Name: "a", Concurrency: 1, MaxWait: -1})
		b := newGate(t, Config{Name: "b", Concurrency: 2, MaxWait: -1})
		atA, _ := a.TryAcquire(Call{})
		atB, _ := b.TryAcquire(Call{Weight: 1})
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		one := func(name string, weight int) {
			wg.Go(func() {
				p, err := b.Acquire(t.Context(), Call{Weight: weight})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				p.Release()
			})
			time.Sleep(time.Second)
		}
		one("older", 2)
		wg.Go(func() {
			ps, err := AcquireAll(t.Context(), At{a, Call{}}, At{b, Call{}})
			if err != nil {
				t.Error(err)
				return
			}
			ps.Sent()
			mu.Lock()
			order = append(order, "both")
			mu.Unlock()
			time.Sleep(time.Second)
			ps.Release()
		})
		time.Sleep(time.Second)
		one("younger", 2)
		atA.Release()
		time.Sleep(time.Second)
		if a.Stats().InUse != 0 {
			t.Error("the first is held while the second is waited for")
		}
		atB.Release()
		wg.Wait()
		if got := fmt.Sprint(order); got != "[older both younger]" {
			t.Errorf("served in the order %v", got)
		}
		idle(t, a)
		idle(t, b)
	})
}

// A nested use is found out also where there would be a permit for it.
func TestAcquireAllNestedWithRoom(t *testing.T) {
	g := newGate(t, Config{Concurrency: 2})
	err := Do(t.Context(), g, Call{}, func(ctx context.Context) error {
		ps, err := AcquireAll(ctx, At{Gate: g})
		ps.Release()
		return err
	})
	if !errors.Is(err, ErrNested) {
		t.Errorf("nested: %v", err)
	}
	idle(t, g)
}

// The starts of all permits are stamped together, and what a call waited for at
// several gates is told from its beginning.
func TestPermitsOfSeveralGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newGate(t, Config{Name: "a", Limits: []Limit{{N: 1, Per: time.Second}}, MaxWait: -1})
		b := newGate(t, Config{Name: "b", Concurrency: 1, MaxWait: time.Minute})
		ps, err := AcquireAll(t.Context(), At{a, Call{Wire: true}}, At{b, Call{Wire: true}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		ps.Sent() // the window of a second begins now
		if d, _ := a.Peek(Call{}); d < time.Second {
			t.Errorf("the next start in %v", d)
		}
		_, err = AcquireAll(t.Context(), At{a, Call{}}, At{b, Call{}})
		var r *Rejected
		if !errors.As(err, &r) || r.Waited < time.Minute+time.Second {
			t.Errorf("%v after %v", err, r.Waited)
		}
		ps.Release()
		idle(t, b)
	})
}

func ExampleAcquireAll() {
	all, _ := New(Config{Name: "all calls", Limits: []Limit{Per(100, time.Second)}})
	host, _ := New(Config{Name: "api.example", Concurrency: 4})
	permits, err := AcquireAll(context.Background(), At{Gate: all}, At{Gate: host})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(all.Stats().InUse, host.Stats().InUse)
	permits.Release()
	fmt.Println(all.Stats().InUse, host.Stats().InUse)
	// Output:
	// 1 1
	// 0 0
}
