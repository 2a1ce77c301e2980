package mete

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/breaker"
)

func broken(t *testing.T, cfg Config) *Gate {
	t.Helper()
	cfg.Breaker = breaker.Config{Failures: 0.5, Lease: time.Minute}
	g := newGate(t, cfg)
	for range 10 {
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { return errors.New("down") })
	}
	return g
}

func TestBreakerRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := broken(t, Config{Concurrency: 5})
		var r *Rejected
		n := 0
		call := func() error {
			return Do(t.Context(), g, Call{}, func(context.Context) error { n++; return nil })
		}
		if err := call(); !errors.As(err, &r) || r.Reason != Breaker || r.RetryAfter != 5*time.Second || n != 0 || Sent(err) {
			t.Errorf("while open: %v, %d calls", err, n)
		}
		time.Sleep(5 * time.Second)
		if err := call(); err != nil || n != 1 {
			t.Errorf("the probe: %v", err)
		}
		if err := call(); err != nil || n != 2 {
			t.Errorf("after the probe: %v", err)
		}
		idle(t, g)
	})
}

// However a probe ends, the next one finds its place free; only success closes
// the breaker, only failure opens it again.
func TestProbeHoweverItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		fn     func(context.CancelFunc) error
		closed bool // to calls afterwards
		probe  bool // the next call is a probe
	}{
		"success": {func(context.CancelFunc) error { return nil }, false, false},
		"error":   {func(context.CancelFunc) error { return errors.New("down") }, true, false},
		"4xx":     {func(context.CancelFunc) error { return Permanent(errors.New("404")) }, false, false},
		"panic":   {func(context.CancelFunc) error { panic("boom") }, false, true},
		"goexit":  {func(context.CancelFunc) error { runtime.Goexit(); return nil }, false, true},
		"cancel":  {func(c context.CancelFunc) error { c(); return context.Canceled }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := broken(t, Config{Concurrency: 5})
				time.Sleep(5 * time.Second)
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					_ = Do(ctx, g, Call{}, func(context.Context) error {
						time.Sleep(time.Second)
						return tc.fn(cancel)
					})
				})
				synctest.Wait()
				if _, err := g.Acquire(t.Context(), Call{}); !errors.Is(err, ErrBreaker) {
					t.Errorf("while the probe is out: %v", err)
				}
				wg.Wait()
				p, err := g.Acquire(t.Context(), Call{})
				if tc.closed != errors.Is(err, ErrBreaker) {
					t.Errorf("afterwards: %v", err)
				}
				if err == nil {
					_, err = g.Acquire(t.Context(), Call{})
					if tc.probe != errors.Is(err, ErrBreaker) {
						t.Errorf("beside another one: %v", err)
					}
					p.Release()
				}
			})
		})
	}
}

func TestBreakerRefusesThoseWhoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 10, Breaker: breaker.Config{Failures: 0.5}})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_ = Do(t.Context(), g, Call{}, func(context.Context) error {
					time.Sleep(time.Second)
					return errors.New("down")
				})
			})
		}
		synctest.Wait()
		start := time.Now()
		for _, patient := range []bool{false, true} {
			wg.Go(func() {
				p, err := g.Acquire(t.Context(), Call{Weight: 10, Patient: patient})
				if patient && (err != nil || time.Since(start) != 6*time.Second || p.Waits().Breaker != 5*time.Second) {
					t.Errorf("patient: %v after %v, %+v", err, time.Since(start), p.Waits())
				}
				if !patient && (!errors.Is(err, ErrBreaker) || time.Since(start) != time.Second) {
					t.Errorf("not patient: %v after %v", err, time.Since(start))
				}
				p.Release()
			})
		}
		wg.Wait()
		idle(t, g)
	})
}

// A caller's cancellation and a throttle are no failures of the provider
// (sony/gobreaker#105, apache/brpc#3532).
func TestBreakerIgnoresCancelsAndThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{MaxWait: -1, Breaker: breaker.Config{Failures: 0.1}})
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			_ = Do(ctx, g, Call{}, func(context.Context) error { cancel(); return context.Canceled })
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { return After(errors.New("429"), time.Millisecond) })
		}
		time.Sleep(time.Hour)
		if err := Do(t.Context(), g, Call{}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
