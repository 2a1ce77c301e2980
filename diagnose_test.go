package mete

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/breaker"
)

func TestDiagnose(t *testing.T) {
	run := func(g *Gate, n int, took time.Duration) {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				_ = Do(context.Background(), g, Call{Patient: true}, func(context.Context) error { time.Sleep(took); return nil })
			})
		}
		wg.Wait()
	}
	for name, tc := range map[string]struct {
		cfg  Config
		do   func(*Gate)
		want string
	}{
		"idle":      {Config{}, func(*Gate) {}, "Idle"},
		"callers":   {Config{Concurrency: 5}, func(g *Gate) { run(g, 3, time.Second) }, "The callers set the pace"},
		"limit":     {Config{Concurrency: 50, Limits: []Limit{Per(10, time.Second)}}, func(g *Gate) { run(g, 50, time.Millisecond) }, "10/s set the pace, as it should"},
		"semaphore": {Config{Concurrency: 2, Limits: []Limit{Per(1000, time.Second)}}, func(g *Gate) { run(g, 50, time.Second) }, "All 2 permits were in use"},
		"paused":    {Config{}, func(g *Gate) { g.Pause(time.Minute) }, "Paused for another 1m0s"},
		"breaker": {Config{Breaker: breaker.Config{Failures: 0.5}}, func(g *Gate) {
			for range 10 {
				_ = Do(context.Background(), g, Call{}, func(context.Context) error { return errors.New("down") })
			}
		}, "The circuit breaker is open"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, tc.cfg)
				before := g.Stats()
				tc.do(g)
				if got := Diagnose(before, g.Stats()); !strings.Contains(got, tc.want) {
					t.Errorf("got %q, want %q; blocked %v", got, tc.want, g.Stats().Blocked)
				}
			})
		})
	}
	if got := Diagnose(Stats{}, Stats{Leaks: 2}); !strings.HasPrefix(got, "2 permits were lost") {
		t.Error(got)
	}
	shared := Stats{Blocked: map[string]time.Duration{"semaphore": time.Second, "limit:1/s": time.Second}, Limits: []LimitStats{{Bound: "limit:1/s"}}}
	if got := Diagnose(Stats{}, shared); got != "No single bound: the waits are shared by limit:1/s (50 %), semaphore (50 %)." {
		t.Error(got)
	}
	s := Stats{Concurrency: 4, InUse: 3, Refused: map[Reason]int64{QueueFull: 2, Paused: 1}}
	if s.Saturation() != 0.75 || s.Shed() != 3 || (Stats{InUse: 3}).Saturation() != 0 {
		t.Errorf("%v, %d", s.Saturation(), s.Shed())
	}
}
