package mete

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// take starts as many calls as the gate admits at this moment.
func take(g *Gate) (n int) {
	for {
		p, ok := g.TryAcquire(Call{})
		if !ok {
			return n
		}
		p.Release()
		n++
	}
}

// crash leaves the state as a killed process does: locked no more, not closed.
func crash(g *Gate) {
	g.mu.Lock()
	k := g.keep
	g.keep = nil
	g.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lock.Close()
	k.lock = nil
}

func TestStateSurvivesRestart(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Name: "https://api.example:443", State: t.TempDir(), Limits: []Limit{
				{Name: "minute", N: 100, Per: time.Minute, Burst: 100},
				{Name: "day", N: 150, Calendar: "day"},
			}}
			time.Sleep(time.Hour)
			g := newGate(t, cfg)
			if n := take(g); n != 100 {
				t.Fatalf("the first start: %d of 100", n)
			}
			time.Sleep(1500 * time.Millisecond) // the second was written
			if killed {
				crash(g)
			} else if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			g = newGate(t, cfg)
			if n := take(g); n != 0 {
				t.Errorf("killed %v: %d starts within the minute of the last run", killed, n)
			}
			time.Sleep(51 * time.Second)
			n := take(g)
			// A crash costs at most what may have started since the last writing.
			if want := 50; n > want || n < 30 || (!killed && n != want) {
				t.Errorf("killed %v: %d starts left of the day, want %d", killed, n, want)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A call that had been granted long before the crash, and had not been sent when
// the state was written, may have been sent in the last moment.
func TestUnsentCallsSurviveACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir(), Limits: []Limit{{N: 4, Per: time.Minute, Burst: 4}}}
		g := newGate(t, cfg)
		for range 3 { // they dial for half a minute
			if _, err := g.Tries(t.Context(), Call{Wire: true}).Next(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		p, ok := g.TryAcquire(Call{})
		if !ok {
			t.Fatal("no permit")
		}
		p.Release()
		time.Sleep(1500 * time.Millisecond)
		crash(g)
		g = newGate(t, cfg)
		time.Sleep(40 * time.Second) // 71 s after the grant
		if n := take(g); n > 0 {
			t.Errorf("%d starts 40 s after the crash, though 4 may have been sent just before it", n)
		}
		time.Sleep(21 * time.Second)
		if n := take(g); n != 4 {
			t.Errorf("%d starts of 4 a minute after the crash", n)
		}
		_ = g.Close()
	})
}

func TestShortWindowWaitsAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir(), Limits: []Limit{{N: 50, Per: time.Second, Burst: 50}}}
		g := newGate(t, cfg)
		take(g)
		crash(g)
		for range 20 { // a crash loop
			g = newGate(t, cfg)
			if n := take(g); n != 0 {
				t.Fatalf("%d starts at once after a crash", n)
			}
			if d, _ := g.Peek(Call{}); d > 1100*time.Millisecond {
				t.Fatalf("next start only in %v", d)
			}
			g.mu.Lock()
			g.keep.touch()
			g.mu.Unlock()
			crash(g)
		}
		time.Sleep(time.Minute)
		g = newGate(t, cfg)
		if n := take(g); n == 0 {
			t.Error("nothing starts a minute after the crash")
		}
		_ = g.Close()
	})
}

func TestPauseSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir()}
		g := newGate(t, cfg)
		g.Pause(time.Hour)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		g = newGate(t, cfg)
		if p := g.Stats().Paused; p != 50*time.Minute {
			t.Errorf("paused for %v", p)
		}
		_ = g.Close()
	})
}

func TestStateFileIsBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p/q", State: t.TempDir(), Limits: []Limit{{N: 5, Per: time.Minute, Burst: 5}}}
		for _, text := range []string{"", "{", `{"version":9}`, "null", `{"version":1,"limits":[{"limit":"limit:5/m","spent":[{"units":-7}]}]}`} {
			if err := os.WriteFile(stateFile(cfg.State, cfg.Name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			g := newGate(t, cfg)
			if n := take(g); n > 0 && text != `{"version":1,"limits":[{"limit":"limit:5/m","spent":[{"units":-7}]}]}` {
				t.Errorf("state %q: %d starts", text, n)
			}
			_ = g.Close()
		}
		if names, _ := filepath.Glob(filepath.Join(cfg.State, "*")); len(names) != 2 {
			t.Errorf("files %v", names)
		}
	})
}

func TestStateIsLocked(t *testing.T) {
	cfg := Config{Name: "p", State: t.TempDir()}
	g := newGate(t, cfg)
	defer g.Close()
	_, err := New(cfg)
	var e *StateInUseError
	if !errors.As(err, &e) || e.PID != os.Getpid() || e.Provider != "p" || e.File != stateFile(cfg.State, "p") || !strings.Contains(err.Error(), "also calls p") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{Name: "p", State: filepath.Join(stateFile(cfg.State, "p"), "x")}); err == nil {
		t.Error("a state folder below a file is accepted")
	}
}
