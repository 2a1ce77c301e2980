package mete

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		var g *Gate
		say := func(format string, args ...any) {
			_ = g.Stats() // no lock is held
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		g = newGate(t, Config{Name: "geo", Concurrency: 1, Retry: Retry{Attempts: 2, Delay: time.Second}, MaxWait: 2 * time.Second, Observer: &Observer{
			Admitted: func(a Admission) {
				say("admitted %s %s %d of weight %d after %v", a.Gate, a.Lane, a.Attempt, a.Weight, a.Waits.Queue())
			},
			Ended:   func(e Ending) { say("ended %d %v again %v held %v", e.Attempt, e.Outcome.Err, e.Again, e.Held) },
			Refused: func(r *Rejected) { say("refused %s", r.Reason) },
			Paused:  func(gate string, d time.Duration) { say("paused %s %v", gate, d.Truncate(time.Hour)) },
		}})
		n := 0
		_ = Do(t.Context(), g, Call{}, func(context.Context) error {
			if n++; n == 1 {
				return errors.New("once")
			}
			time.Sleep(time.Second)
			return After(errors.New("429"), time.Hour)
		})
		_, _ = g.Acquire(t.Context(), Call{})
		want := "admitted geo default 1 of weight 1 after 0s|ended 1 once again true held 0s|admitted geo default 2 of weight 1 after 0s|" +
			"paused geo 1h0m0s|ended 2 429 (retry after 1h0m0s) again false held 1s|refused paused"
		if got := strings.Join(log, "|"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A permit that nobody can release any more is reported with where it was
// taken, and given back.
func TestFindLeaks(t *testing.T) {
	var mu sync.Mutex
	var stacks []string
	g := newGate(t, Config{Concurrency: 2, FindLeaks: true, Observer: &Observer{Leaked: func(_, stack string) {
		mu.Lock()
		defer mu.Unlock()
		stacks = append(stacks, stack)
	}}})
	forget := func() {
		if _, err := g.Acquire(t.Context(), Call{}); err != nil {
			t.Error(err)
		}
		tries := g.Tries(t.Context(), Call{})
		if _, err := tries.Next(); err != nil {
			t.Error(err)
		}
	}
	kept, _ := g.TryAcquire(Call{})
	kept.Release()
	forget()
	for end := time.Now().Add(10 * time.Second); g.Stats().Leaks < 2 && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if s := g.Stats(); s.Leaks != 2 || s.InUse != 0 || len(stacks) != 2 || !strings.Contains(stacks[0], "TestFindLeaks") {
		t.Errorf("%d leaks, %d in use, stacks %q", s.Leaks, s.InUse, stacks)
	}
	runtime.KeepAlive(kept)
}

// A permit that is lost in a bubble comes back at the gate's next operation:
// the garbage collector must not wake anybody there.
func TestLeakInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, FindLeaks: true})
		func() {
			if _, err := g.Acquire(t.Context(), Call{}); err != nil {
				t.Error(err)
			}
		}()
		done := make(chan error)
		go func() {
			p, err := g.Acquire(t.Context(), Call{})
			p.Release()
			done <- err
		}()
		synctest.Wait()
		for range 1000 {
			runtime.GC()
			if g.mu.Lock(); g.leaks > 0 {
				g.mu.Unlock()
				break
			}
			g.mu.Unlock()
			runtime.Gosched()
		}
		g.Pause(0) // any operation
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A start that nobody can stamp any more does not lie in the window for good:
// it counts from when it was found to be lost.
func TestLostStartLeavesTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, FindLeaks: true, Limits: []Limit{Per(1, time.Second)}})
		func() {
			if _, err := g.Acquire(t.Context(), Call{Wire: true}); err != nil {
				t.Error(err)
			}
		}()
		for g.Stats().Leaks == 0 {
			runtime.GC()
			runtime.Gosched()
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("a start that may have been made was forgotten")
		}
		time.Sleep(2 * time.Second)
		p, ok := g.TryAcquire(Call{})
		if p.Release(); !ok {
			t.Errorf("a lost start still lies in the window: %v", g.Stats())
		}
	})
}
