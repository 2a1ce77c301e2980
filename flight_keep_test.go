package mete

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/quota"
)

var errFailed = Outcome{Err: errors.New("500"), Repeat: true}

// attempted is an attempt that was admitted.
func attempted(t *testing.T, tries *Tries) *Permit {
	t.Helper()
	p, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A probe that fails is tried again at once under the permit that is kept.
func TestKeptProbeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Retry: Retry{Attempts: 2, Delay: time.Second, KeepPermit: true}})
		g.Pause(time.Second)
		time.Sleep(2 * time.Second)
		tries := g.Tries(t.Context(), Call{})
		attempted(t, tries)
		if !tries.Again(errFailed) {
			t.Fatal("not repeated")
		}
		start := time.Now()
		p := attempted(t, tries)
		if d := time.Since(start); d != time.Second {
			t.Errorf("the probe was tried again after %v", d)
		}
		tries.Again(Outcome{Answered: true})
		if p.Release(); g.q.pause.probing {
			t.Error("its success does not end the pause")
		}
	})
}

// Under a permit that is kept nothing starts any more, and what it teaches is
// told with the attempt.
func TestKeptPermitIsAtRest(t *testing.T) {
	g := newGate(t, Config{Adaptive: &adaptive.Config{}, Retry: Retry{Attempts: 2, KeepPermit: true}})
	tries := g.Tries(t.Context(), Call{})
	p := attempted(t, tries)
	if tries.Again(errFailed); p.flight.sample.started {
		t.Error("the sample goes on")
	}
	attempted(t, tries).Release()

	tries = g.Tries(t.Context(), Call{Wire: true})
	p = attempted(t, tries)
	tries.Again(errFailed)
	if p.Sent(); g.Stats().Sent != 0 {
		t.Error("sent after the end of the attempt")
	}
	attempted(t, tries).Release()
	idle(t, g)
}

// The permit of the attempt before is used up, also if it can still tell how
// long it waited.
func TestKeptPermitWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1, Retry: Retry{Attempts: 2, Delay: 1, KeepPermit: true}})
		first, _ := g.TryAcquire(Call{})
		time.AfterFunc(time.Second, first.Release)
		tries := g.Tries(t.Context(), Call{})
		before := attempted(t, tries)
		tries.Again(errFailed)
		p := attempted(t, tries)
		before.Release()
		if s := g.Stats(); s.InUse != 1 || s.Misuse != 1 {
			t.Errorf("%d in use, %d misused", s.InUse, s.Misuse)
		}
		p.Release()
		if before.Waits().Semaphore != time.Second {
			t.Errorf("it waited %+v", before.Waits())
		}
		if n := g.Stats().InUse; n != 0 {
			t.Errorf("%d in use after the end", n)
		}
	})
}

// However an attempt ends that did not wait, its flight is the next one's.
func TestFlightsAreUsedAgain(t *testing.T) {
	g := newGate(t, Config{Concurrency: 1, MaxQueue: 1, Retry: Retry{Attempts: 2, Delay: 1}})
	do := func(err error) {
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { return err })
	}
	for name, call := range map[string]func(){
		"Release": func() { p, _ := g.TryAcquire(Call{}); p.Release() },
		"Cancel":  func() { p, _ := g.Acquire(t.Context(), Call{}); p.Cancel() },
		"invalid": func() { _, _ = g.TryAcquire(Call{Lane: "none"}); _, _ = g.Acquire(t.Context(), Call{Lane: "none"}) },
		"refused": func() { _, _ = g.TryAcquire(Call{Weight: 2}); _, _ = g.Acquire(t.Context(), Call{Weight: 2}) },
		"success": func() { do(nil) },
		"failure": func() { do(errFailed.Err) },
		"held": func() {
			tries := g.Tries(t.Context(), Call{})
			p := attempted(t, tries)
			tries.Again(Outcome{})
			p.Release()
		},
	} {
		call()
		if g.q.spares != 1 {
			t.Errorf("%s: %d flights", name, g.q.spares)
		}
	}
	cfg := g.Config()
	cfg.Retry.KeepPermit = true
	if err := g.Update(cfg); err != nil {
		t.Fatal(err)
	}
	if do(errFailed.Err); g.q.spares != 2 {
		t.Errorf("%d flights of an attempt and the one before", g.q.spares)
	}
}

// One call in sixteen is timed in any case, for the latency in Stats.
func TestSampledCalls(t *testing.T) {
	g := newGate(t, Config{})
	for range 32 {
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { return nil })
	}
	if n := g.Stats().Ended; n != 2 {
		t.Errorf("%d calls of Do were timed", n)
	}
	for range 32 {
		p, _ := g.TryAcquire(Call{})
		p.Release()
	}
	if n := g.Stats().Ended; n != 4 {
		t.Errorf("%d calls were timed", n)
	}
}

// Each call that was under way when a quota was heard of is no part of its count
// until it answers, however that is told.
func TestUnderWayWhenAQuotaIsHeardOf(t *testing.T) {
	g := newGate(t, Config{})
	var all [4]*Tries
	for i := range all {
		all[i] = g.Tries(t.Context(), Call{})
		attempted(t, all[i])
	}
	shows := Outcome{Answered: true, Quotas: []quota.Quota{{Name: "q", Unit: Requests, HasLimit: true, Limit: 100, HasRemaining: true, Remaining: 50, Window: time.Hour}}}
	for i, o := range []Outcome{shows, shows, {Answered: true}, {Answered: true}} {
		p := all[i].permit
		if i%2 == 1 {
			p.Release()
		}
		if all[i].Again(o); i%2 == 0 {
			p.Release()
		}
		if before := g.q.learned.known[0].before; before != int64(3-i) {
			t.Errorf("%d are under way after %d", before, i+1)
		}
	}
}

// What a flight paid before is not paid back with the next call.
func TestChargeOfTheFlightBefore(t *testing.T) {
	g := newGate(t, Config{Limits: []Limit{{N: 5, Per: time.Hour, Unit: "tokens"}}})
	tokens := Call{Costs: map[string]int64{"tokens": 5}}
	p, _ := g.TryAcquire(tokens)
	p.Release()
	p, _ = g.TryAcquire(Call{})
	p.Cancel()
	if _, ok := g.TryAcquire(tokens); ok {
		t.Error("tokens came back that another call has paid")
	}
}

// The end of a call whose outcome is told already is now for those that wait.
func TestReleaseAfterTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 1})
		tries := g.Tries(t.Context(), Call{})
		p := attempted(t, tries)
		tries.Again(Outcome{Answered: true})
		time.AfterFunc(time.Second, p.Release)
		p, err := g.Acquire(t.Context(), Call{})
		if err != nil || p.Waits().Semaphore != time.Second {
			t.Errorf("%v after %+v", err, p.Waits())
		}
		p.Release()
	})
}

// The contexts of an attempt and of the whole call end with what they are for.
func TestContextsEndWithTheAttempt(t *testing.T) {
	g := newGate(t, Config{Timeout: time.Hour, Total: 2 * time.Hour, Retry: Retry{Attempts: 2, Delay: 1}})
	tries := g.Tries(t.Context(), Call{})
	attempted(t, tries)
	first := tries.Context()
	if !tries.Again(errFailed) || first.Err() == nil {
		t.Error("an attempt outlives the next one")
	}
	p := attempted(t, tries)
	if tries.Again(errFailed) || tries.Context().Err() != nil {
		t.Error("the last attempt ends before its release")
	}
	if p.Release(); tries.ctx.Err() == nil {
		t.Error("the call outlives its last attempt")
	}
}

// The turn of the taught rate that a start took is given back once, and only
// that of the last start, if it was not made.
func TestTurnOfTheRateComesBackOnce(t *testing.T) {
	for _, wire := range []bool{false, true} {
		g := newGate(t, Config{Adaptive: &adaptive.Config{}, Retry: Retry{Attempts: 2, KeepPermit: true}})
		tries := g.Tries(t.Context(), Call{Wire: wire})
		p := attempted(t, tries)
		p.flight.gap, g.q.auto.due = 5, 100
		tries.Again(errFailed)
		want := time.Duration(100)
		if wire {
			want = 95 // nothing was sent
		}
		if p.Cancel(); g.q.auto.due != want {
			t.Errorf("wire %v: %d of a turn at %d", wire, g.q.auto.due, want)
		}
	}
	g := newGate(t, Config{Adaptive: &adaptive.Config{}})
	p, _ := g.TryAcquire(Call{Wire: true})
	p.flight.gap, g.q.auto.due = 5, 100
	p.Sent()
	if err := p.Replay(t.Context()); err != nil {
		t.Error(err)
	}
	if p.Release(); g.q.auto.due != 100 {
		t.Error("the turn of the start before the repetition came back")
	}
}

// A repetition whose permit is gone when its turn comes costs nothing, and one
// that comes later is read for quotas as any call is.
func TestReplayOfWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Limits: []Limit{Per(1, time.Second)}})
		p, _ := g.TryAcquire(Call{Wire: true})
		p.Sent()
		time.AfterFunc(time.Second/2, p.Release)
		start := time.Now()
		_ = p.Replay(t.Context())
		next, err := g.Acquire(t.Context(), Call{})
		if d := time.Since(start); err != nil || d > 1100*time.Millisecond {
			t.Errorf("%v after %v", err, d)
		}
		next.Release()

		g = newGate(t, Config{})
		first, _ := g.TryAcquire(Call{})
		p, _ = g.TryAcquire(Call{Wire: true})
		p.Sent()
		if !first.WantsQuotas() || p.WantsQuotas() {
			t.Error("one call in a tenth of a second is to be read")
		}
		first.Release()
		time.Sleep(time.Second)
		if err := p.Replay(t.Context()); err != nil || !p.WantsQuotas() {
			t.Errorf("%v, and the repetition is not read", err)
		}
		p.Release()
	})
}

// The times that somebody is told of, or that a ramp begins with, are read from
// the clock, however quick calls are.
func TestTimesThatAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := time.Duration(0)
		g := newGate(t, Config{Observer: &Observer{Ended: func(e Ending) { held = e.Held }}})
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { time.Sleep(time.Second); return nil })
		if held != time.Second {
			t.Errorf("held for %v", held)
		}
		g = newGate(t, Config{})
		g.Pause(time.Second)
		time.Sleep(2 * time.Second)
		p, _ := g.TryAcquire(Call{})
		time.Sleep(time.Second)
		if p.Release(); g.q.pause.rampFrom != 3*time.Second {
			t.Errorf("the ramp begins at %v", g.q.pause.rampFrom)
		}
	})
}
