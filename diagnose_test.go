package mete

import (
	"context"
	"errors"
	"runtime"
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
		"callers":   {Config{Concurrency: 5}, func(g *Gate) { run(g, 3, time.Second) }, "The callers, or the input, set the pace"},
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
	shared := Stats{Blocked: map[string]time.Duration{"semaphore": time.Second, "limit:1/s": time.Second}, age: 2 * time.Second, Attempts: 1}
	if got := Diagnose(Stats{}, shared); got != "No single bound: the waits are shared by limit:1/s (50 %), semaphore (50 %)." {
		t.Error(got)
	}
	s := Stats{Concurrency: 4, InUse: 3, Refused: map[Reason]int64{QueueFull: 2, Paused: 1}}
	if s.Saturation() != 0.75 || s.Shed() != 3 || (Stats{InUse: 3}).Saturation() != 0 {
		t.Errorf("%v, %d", s.Saturation(), s.Shed())
	}
}

// Each situation is staged for five seconds and told apart from the two
// snapshots around them alone.
func TestSituationsAreToldApart(t *testing.T) {
	// run makes n calls at once and waits for them.
	run := func(g *Gate, n int, took time.Duration) {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				_ = Do(context.Background(), g, Call{Patient: true}, func(context.Context) error { time.Sleep(took); return nil })
			})
		}
		wg.Wait()
	}
	const look = 5 * time.Second
	// callers keep n calls asking; each is on the wire for took().
	callers := func(t *testing.T, g *Gate, n int, took func() time.Duration) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = Do(ctx, g, Call{Patient: true}, func(ctx context.Context) error { return sleep(ctx, took()) })
				}
			})
		}
		t.Cleanup(func() { cancel(); wg.Wait() })
	}
	fixed := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	for name, stage := range map[string]struct {
		cfg    Config
		before func(*testing.T, *Gate)
		during func(*testing.T, *Gate)
		want   []string
	}{
		"limiter": {
			Config{Concurrency: 64, Limits: []Limit{Per(50, time.Second)}}, nil,
			func(t *testing.T, g *Gate) { callers(t, g, 64, fixed(200*time.Millisecond)) },
			[]string{"50/s set the pace, as it should: more permits change nothing", "50/s x 200ms = 10 in flight"},
		},
		"semaphore: the provider slowed down": {
			Config{Concurrency: 10, Limits: []Limit{Per(200, time.Second)}},
			func(t *testing.T, g *Gate) {
				slow := time.Now().Add(10 * time.Second)
				callers(t, g, 20, func() time.Duration {
					if time.Now().Before(slow) {
						return 100 * time.Millisecond
					}
					return 500 * time.Millisecond
				})
				time.Sleep(11 * time.Second)
			}, nil,
			[]string{"All 10 permits were in use, and the provider slowed down: calls take 500ms", "times the 1", "look at the provider"},
		},
		"semaphore: too few permits": {
			Config{Concurrency: 5, Limits: []Limit{Per(50, time.Second)}}, nil,
			func(t *testing.T, g *Gate) { callers(t, g, 20, fixed(200*time.Millisecond)) },
			[]string{"All 5 permits were in use: 50/s x 200ms needs about 10 (Little). Raise the concurrency."},
		},
		"pool": {
			Config{Concurrency: 10}, nil,
			func(t *testing.T, g *Gate) {
				pool := make(chan struct{}, 2)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						for {
							p, err := g.Acquire(ctx, Call{Wire: true, Patient: true})
							if err != nil {
								return
							}
							pool <- struct{}{}
							p.Sent()
							_ = sleep(ctx, 50*time.Millisecond)
							<-pool
							p.Release()
						}
					})
				}
				t.Cleanup(func() { cancel(); wg.Wait() })
			},
			[]string{"hidden second bound", "MaxConnsPerHost to at least the 10 permits"},
		},
		"paused": {
			Config{Concurrency: 4}, nil,
			func(t *testing.T, g *Gate) {
				callers(t, g, 4, fixed(10*time.Millisecond))
				g.Pause(30 * time.Second)
			},
			[]string{"Paused for another 25s: the provider asked to stay away"},
		},
		"leak": {
			Config{Concurrency: 3, FindLeaks: true},
			func(t *testing.T, g *Gate) {
				for range 3 {
					p, err := g.Acquire(t.Context(), Call{}) // and forgotten by its owner
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(p.Release)
				}
				time.Sleep(time.Minute)
			},
			func(t *testing.T, g *Gate) { callers(t, g, 1, fixed(time.Millisecond)) },
			[]string{"All 3 permits are in use, and none came back for 5s", "The oldest has been held for 1m5s; it was taken at ", "diagnose_test.go:"},
		},
		"one of three permits leaked": {
			Config{Concurrency: 3, FindLeaks: true},
			func(t *testing.T, g *Gate) {
				p, err := g.Acquire(t.Context(), Call{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Release)
				time.Sleep(time.Minute)
			},
			func(t *testing.T, g *Gate) { callers(t, g, 4, fixed(20*time.Millisecond)) },
			[]string{"All 3 permits were in use, and one is probably leaked: it has been held for 1m5s, where calls take 20ms", "diagnose_test.go:"},
		},
		"slow calls are not lost ones": {
			Config{Concurrency: 1}, nil,
			func(t *testing.T, g *Gate) {
				callers(t, g, 2, fixed(4*time.Second))
				time.Sleep(6 * time.Second)
			},
			[]string{"All 1 permits were in use: no limit is near."},
		},
		"waits in a part of the time": {
			Config{Concurrency: 2}, nil,
			func(t *testing.T, g *Gate) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					for ctx.Err() == nil {
						run(g, 4, 100*time.Millisecond) // two of them wait for 100 ms
						_ = sleep(ctx, 300*time.Millisecond)
					}
				}()
				t.Cleanup(func() { cancel(); <-done })
			},
			[]string{"Calls waited in 20 % of the time only, mostly for semaphore; else the callers, or the input, set the pace."},
		},
		"producer": {
			Config{Concurrency: 16, Limits: []Limit{Per(50, time.Second)}}, nil,
			func(t *testing.T, g *Gate) {
				callers(t, g, 1, fixed(100*time.Millisecond))
			},
			[]string{"Nothing waited: 5", "The callers, or the input, set the pace; to go faster, bring more at once."},
		},
		"back-off": {
			Config{Concurrency: 2, Retry: Retry{Attempts: 4, Delay: time.Second}}, nil,
			func(t *testing.T, g *Gate) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					for ctx.Err() == nil {
						_ = Do(ctx, g, Call{}, func(context.Context) error { return errors.New("down") })
					}
				}()
				t.Cleanup(func() { cancel(); <-done })
			},
			[]string{"Most of the waiting was back-off", "Look at their errors first."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, stage.cfg)
				if stage.before != nil {
					stage.before(t, g)
				}
				before := g.Stats()
				if stage.during != nil {
					stage.during(t, g)
				}
				time.Sleep(look)
				synctest.Wait()
				now := g.Stats()
				got := Diagnose(before, now)
				for _, want := range stage.want {
					if !strings.Contains(got, want) {
						t.Errorf("got %q, want %q; %+v", got, want, now)
					}
				}
			})
		})
	}
}

// The processor is told from the two readings of it, whatever the queue says
// save for a limit that holds.
func TestProcessorIsTheBound(t *testing.T) {
	start := time.Now()
	before := Stats{At: start, CPU: time.Second, Processors: 2}
	now := Stats{At: start.Add(5 * time.Second), CPU: 10500 * time.Millisecond, Processors: 2, Attempts: 1000, Concurrency: 8,
		Blocked: map[string]time.Duration{"semaphore": 5 * time.Second}}
	if got := Diagnose(before, now); !strings.HasPrefix(got, "This machine is the bound: the process keeps 1.9 of 2 processors busy.") {
		t.Error(got)
	}
	now.Blocked = map[string]time.Duration{"limit:200/s": 5 * time.Second}
	if got := Diagnose(before, now); !strings.HasPrefix(got, "200/s set the pace") {
		t.Error(got)
	}
	now.Blocked, now.CPU = map[string]time.Duration{"semaphore": 5 * time.Second}, 3*time.Second
	if got := Diagnose(before, now); !strings.HasPrefix(got, "All 8 permits were in use") {
		t.Error(got)
	}
	// Where other processes use the machine its goroutines wait: all but two of ten calls.
	now.Blocked, now.Ended, now.Held = map[string]time.Duration{"semaphore": 5 * time.Second}, 1000, 50*time.Second
	now.Ready = 40 * time.Second
	if got := Diagnose(before, now); !strings.HasPrefix(got, "This machine is the bound: about 8 goroutines that could run wait for a processor, with 10 calls in flight; the process gets 0.4 of 2 processors, others use the rest.") {
		t.Error(got)
	}
	now.Ready = 20 * time.Second
	if got := Diagnose(before, now); !strings.HasPrefix(got, "All 8 permits were in use") {
		t.Error(got)
	}
	used := processorTime()
	for end := time.Now().Add(time.Minute); processorTime() == used && time.Now().Before(end); {
		continue
	}
	if processorTime() <= used {
		t.Error("the processor time of this process stands still")
	}
	waited := readProcessor().ready
	for end := time.Now().Add(time.Minute); readProcessor().ready == waited && time.Now().Before(end); {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(runtime.Gosched)
		}
		wg.Wait()
	}
	if readProcessor().ready <= waited {
		t.Error("no goroutine of this process seems to wait for a processor")
	}
}

// A gate that runs says how many permits it needs.
func TestPlanOfAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Config{Concurrency: 64, Limits: []Limit{Per(1000, time.Minute), Per(20, time.Second)}})
		if _, err := g.Stats().Plan(0); err == nil {
			t.Error("planned without a latency")
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_ = Do(t.Context(), g, Call{Patient: true}, func(context.Context) error { time.Sleep(600 * time.Millisecond); return nil })
			})
		}
		wg.Wait()
		p, err := g.Stats().Plan(0)
		if err != nil || p.Comment != "1000/m x 600ms = 10 in flight (Little), x 2 headroom = 20" {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// sleep is time.Sleep that ends with ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
