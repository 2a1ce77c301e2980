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
