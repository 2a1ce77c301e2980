package mete

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A budget that is spent refuses at once, those that wait already too, and
// opens with the next period (BerriAI/litellm#39309: nothing is charged for a
// refusal).
func TestSpentBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble begins at midnight UTC
		time.Sleep(time.Hour)
		g := newGate(t, Config{MaxWait: -1, Concurrency: 1, Limits: []Limit{{Name: "money", Unit: "usd", N: 10, Calendar: "day", Budget: true}}})
		cost := func(n int64) Call { return Call{Costs: map[string]int64{"usd": n}} }
		first, err := g.Acquire(t.Context(), cost(4))
		if err != nil {
			t.Fatal(err)
		}
		queued := make(chan error, 1)
		go func() {
			p, err := g.Acquire(t.Context(), cost(6))
			p.Release()
			queued <- err
		}()
		synctest.Wait()
		first.Settle(map[string]int64{"usd": 5}) // dearer than it seemed: the one that waits does not fit any more
		first.Release()
		e, ok := errors.AsType[*Rejected](<-queued)
		if !ok || e.Reason != Budget || e.Bound != "limit:money" {
			t.Fatalf("the call that waited: %v", e)
		}
		within(t, "opens", e.RetryAfter, 23*time.Hour, 23*time.Hour+2*time.Second)
		if _, err := g.Acquire(t.Context(), cost(6)); !errors.Is(err, ErrBudget) {
			t.Fatalf("a new call: %v", err)
		}
		if p, err := g.Acquire(t.Context(), cost(5)); err != nil {
			t.Fatalf("what fits goes on: %v", err)
		} else {
			p.Release()
		}
		time.Sleep(23*time.Hour - 500*time.Millisecond) // the turn itself is no reason to refuse
		if p, err := g.Acquire(t.Context(), cost(10)); err != nil {
			t.Fatalf("the next day: %v", err)
		} else {
			p.Release()
		}
	})
}

// A call sits out what is within its MaxPause, patient or not, and is refused
// at once what is beyond it, also when it waits already.
func TestMaxPauseOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1, Limits: []Limit{Per(1, time.Second)}})
		call := Call{Patient: true, MaxPause: time.Minute}
		p, _ := g.Acquire(t.Context(), call)
		p.Release()
		ends := make(chan error, 2)
		for _, c := range []Call{call, {Patient: true}} {
			go func() {
				p, err := g.Acquire(t.Context(), c)
				p.Release()
				ends <- err
			}()
			synctest.Wait()
		}
		g.Pause(2 * time.Minute)
		if err := <-ends; !errors.Is(err, ErrPaused) {
			t.Fatalf("a pause beyond MaxPause: %v", err)
		}
		if _, err := g.Acquire(t.Context(), call); !errors.Is(err, ErrPaused) {
			t.Fatalf("a new call: %v", err)
		}
		time.Sleep(90 * time.Second) // half a minute is left of it
		if p, err := g.Acquire(t.Context(), call); err != nil {
			t.Fatalf("a pause within MaxPause: %v", err)
		} else {
			p.Release()
		}
		if err := <-ends; err != nil {
			t.Fatalf("without MaxPause: %v", err)
		}
	})
}

// The delay that a throttle asks for is held against MaxPause as well.
func TestMaxPauseOfARepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1, Retry: Retry{Attempts: 2}})
		tries := g.Tries(t.Context(), Call{MaxPause: time.Minute})
		p, err := tries.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tries.Again(Outcome{Err: errPushedBack, Throttled: true, Hinted: true, RetryAfter: 61 * time.Second, Repeat: true}) {
			t.Error("waits longer than MaxPause")
		}
		p.Release()
		if !errors.Is(tries.Refusal(), ErrPaused) {
			t.Errorf("refusal: %v", tries.Refusal())
		}
	})
}

// A calendar limit that is used up is waited for within MaxPause only.
func TestMaxPauseOfACalendarLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Hour)
		g := newGate(t, Config{MaxWait: -1, Limits: []Limit{{N: 1, Calendar: "day"}}})
		once := func(most time.Duration) error {
			return Do(t.Context(), g, Call{MaxPause: most}, func(context.Context) error { return nil })
		}
		if err := once(time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := once(time.Hour); !errors.Is(err, ErrBudget) {
			t.Errorf("two hours with an hour's patience: %v", err)
		}
		if err := once(3 * time.Hour); err != nil {
			t.Errorf("two hours with three hours' patience: %v", err)
		}
	})
}

func TestBudgetNeedsACalendar(t *testing.T) {
	if _, err := New(Config{Limits: []Limit{{N: 1, Per: time.Second, Budget: true}}}); err == nil {
		t.Error("a budget per second was accepted")
	}
}
