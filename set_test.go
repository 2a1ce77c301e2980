package mete

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
)

// One place, many spellings, one key (zalando/skipper#1911,
// linkerd/linkerd2-proxy#4605).
func TestHostKey(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP://EXAMPLE.test":         "http://example.test:80",
		"http://example.test:80/":     "http://example.test:80",
		"http://example.test./x?y":    "http://example.test:80",
		"http://u:p@example.test":     "http://example.test:80",
		"http://Example.Test:080":     "http://example.test:80",
		"https://example.test:443":    "https://example.test:443",
		"https://example.test":        "https://example.test:443",
		"http://B\u00fccher.example/": "http://xn--bcher-kva.example:80",
		"http://[::1]:8080/":          "http://[::1]:8080",
		"http://127.0.0.1:9000/a":     "http://127.0.0.1:9000",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := HostKey(u); got != want {
			t.Errorf("HostKey(%q) = %q, want %q", text, got, want)
		}
	}
}

// Keys that nobody uses are forgotten, a limit in force never
// (mholt/caddy-ratelimit#44).
func TestSetForgetsOnlyWhatIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewSet(SetConfig{Gate: Config{Limits: []Limit{{N: 5, Per: time.Hour, Burst: 5}}}, MaxKeys: 1000, Idle: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		k, _ := s.Gate("K")
		if n := take(k); n != 5 {
			t.Fatalf("took %d", n)
		}
		for i := range 50_000 {
			if _, err := s.Gate(fmt.Sprint("once ", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond / 2)
			if i%100 > 0 {
				continue
			}
			if n := len(s.Gates()); n > 1002 {
				t.Fatalf("%d gates", n)
			}
		}
		again, _ := s.Gate("K")
		if again != k || take(again) != 0 {
			t.Error("a drained key was forgotten")
		}
		if s.Spilled() == 0 {
			t.Error("nothing went to the overflow gate")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What a gate knows of a provider in trouble is in force too: a breaker that is
// open, a rate that responses or 429s taught.
func TestSetForgetsNoTrouble(t *testing.T) {
	for name, trouble := range map[string]func(*testing.T, *Gate){
		"breaker": func(t *testing.T, g *Gate) {
			for range 10 {
				_ = Do(t.Context(), g, Call{}, func(context.Context) error { return errors.New("down") })
			}
		},
		"lowered": func(t *testing.T, g *Gate) {
			respond(t, g, shows("x", 1, -1, time.Second, time.Second))
		},
		"adaptive": func(t *testing.T, g *Gate) {
			_ = Do(t.Context(), g, Call{}, func(context.Context) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := NewSet(SetConfig{Gate: Config{
					Limits:   []Limit{{N: 50, Per: time.Second, Burst: 50}},
					Breaker:  breaker.Config{Failures: 0.5, Open: time.Minute},
					Adaptive: map[bool]*adaptive.Config{true: {Seed: 1}}[name == "adaptive"],
				}, Idle: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				g, _ := s.Gate("a")
				trouble(t, g)
				time.Sleep(30 * time.Second)
				_, _ = s.Gate("b")
				if again, _ := s.Gate("a"); again != g {
					t.Error("forgotten while it is in force")
				}
				time.Sleep(30 * time.Minute)
				_, _ = s.Gate("c")
				if again, _ := s.Gate("a"); again == g {
					t.Error("never forgotten")
				}
			})
		})
	}
}

// What is in force is kept for as long as it is, and not for longer: a provider
// that was paused and is never called again does not stay for good.
func TestSetForgetsInTime(t *testing.T) {
	fails := func(t *testing.T, g *Gate, err error) {
		_ = Do(t.Context(), g, Call{}, func(context.Context) error { return err })
	}
	for name, c := range map[string]struct {
		trouble     func(*testing.T, *Gate)
		kept, ended time.Duration // since the last use
	}{
		"a call":   {func(t *testing.T, g *Gate) { p, _ := g.TryAcquire(Call{}); time.AfterFunc(time.Hour, p.Release) }, 59 * time.Minute, time.Hour + time.Minute},
		"a pause":  {func(t *testing.T, g *Gate) { g.Pause(time.Hour) }, 59 * time.Minute, time.Hour + time.Minute},
		"no probe": {func(t *testing.T, g *Gate) { g.Pause(time.Second) }, 9 * time.Minute, 11 * time.Minute},
		"a ramp": {func(t *testing.T, g *Gate) {
			g.Pause(time.Second)
			time.Sleep(2 * time.Second)
			fails(t, g, nil)
		}, 1100 * time.Millisecond, time.Minute},
		"a lowered rate": {func(t *testing.T, g *Gate) {
			fails(t, g, After(errAgain, time.Second))
			time.Sleep(5 * time.Second)
			fails(t, g, nil)
		}, 9 * time.Minute, 3 * time.Hour},
		"a breaker": {func(t *testing.T, g *Gate) {
			for range 10 {
				fails(t, g, errAgain)
			}
		}, 29 * time.Minute, 41 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []time.Duration{c.kept, c.ended} {
				synctest.Test(t, func(t *testing.T) {
					s, err := NewSet(SetConfig{Gate: Config{
						Concurrency: 10,
						Retry:       Retry{Attempts: 1},
						Limits:      []Limit{Per(50, time.Second)},
						Breaker:     breaker.Config{Failures: 0.6, Open: 30 * time.Minute},
					}, Idle: time.Second})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					g, _ := s.Gate("a")
					c.trouble(t, g)
					g, _ = s.Gate("a")
					time.Sleep(at)
					_, _ = s.Gate("b")
					if again, _ := s.Gate("a"); (again == g) != (at == c.kept) {
						t.Errorf("after %v: kept %v", at, again == g)
					}
				})
			}
		})
	}
}

// There are exactly MaxKeys gates and one more for the rest; whoever is asked
// for stays; a place is free again as soon as its gate has been idle; and one
// that was forgotten admits nothing.
func TestSetIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewSet(SetConfig{Gate: Config{Concurrency: 1}, MaxKeys: 2, Idle: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		gate := func(key string) *Gate {
			t.Helper()
			g, err := s.Gate(key)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		time.Sleep(5 * time.Second)
		a, b := gate("a"), gate("b")
		c := gate("c")
		if c == a || c == b || c != gate("d") || s.Spilled() != 2 || len(s.Gates()) != 3 || c.Name() == "c" {
			t.Errorf("the third of two is %s, %d spilled, %d gates", c.Name(), s.Spilled(), len(s.Gates()))
		}
		time.Sleep(5 * time.Second)
		if gate("a") != a || gate("c") != c { // looks through all, and nobody is idle
			t.Error("a gate was forgotten too early")
		}
		time.Sleep(5500 * time.Millisecond)
		if g := gate("c"); g == c || g.Name() != "c" {
			t.Error("no place for another key although b is idle")
		}
		if gate("a") != a {
			t.Error("a gate that was asked for was forgotten")
		}
		if _, err := b.Acquire(t.Context(), Call{}); !errors.Is(err, ErrDraining) {
			t.Errorf("a forgotten gate: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), Call{}); !errors.Is(err, ErrDraining) {
			t.Errorf("the overflow gate of a closed set: %v", err)
		}
	})
}
