package mete

import (
	"encoding/json"
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
		deep := Config{Name: cfg.Name, State: cfg.State, Limits: []Limit{Bucket(5, time.Minute, 20)}}
		if err := os.WriteFile(stateFile(cfg.State, cfg.Name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		g := newGate(t, deep)
		if n := take(g); n > 0 {
			t.Errorf("a bucket deeper than its rate: %d starts", n)
		}
		_ = g.Close()
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

// A clock that was set back between the runs makes nothing last longer than it
// would have: no time counts as gone by.
func TestStateWhenTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir(), Limits: []Limit{{N: 4, Per: time.Minute, Burst: 4}}}
		g := newGate(t, cfg)
		take(g)
		time.Sleep(30 * time.Second)
		g.Pause(20 * time.Second)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		// As if the clock had been an hour ahead.
		data, err := os.ReadFile(stateFile(cfg.State, cfg.Name))
		if err != nil {
			t.Fatal(err)
		}
		var s saved
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		s.At, s.Paused = s.At.Add(time.Hour), s.Paused.Add(time.Hour)
		if data, err = json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(stateFile(cfg.State, cfg.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		g = newGate(t, cfg)
		defer g.Close()
		if p := g.Stats().Paused; p != 20*time.Second {
			t.Errorf("paused for %v, were 20s left", p)
		}
		time.Sleep(25 * time.Second)
		if free := g.Stats().Limits[0].Free; free != 0 {
			t.Errorf("%d free 55 s after all were spent", free)
		}
		time.Sleep(6 * time.Second)
		if free := g.Stats().Limits[0].Free; free != 4 {
			t.Errorf("%d free 61 s after all were spent", free)
		}
	})
}

// Two limits of one name and different units are two.
func TestStateOfTwoUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir(), Limits: []Limit{
			{N: 100, Per: time.Minute, Burst: 100}, {N: 100, Per: time.Minute, Burst: 100, Unit: "tokens"},
		}}
		g := newGate(t, cfg)
		for range 3 {
			p, ok := g.TryAcquire(Call{Costs: map[string]int64{"tokens": 20}})
			if !ok {
				t.Fatal("refused")
			}
			p.Release()
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		g = newGate(t, cfg)
		defer g.Close()
		if l := g.Stats().Limits; l[0].Free != 97 || l[1].Free != 40 {
			t.Errorf("%d calls and %d tokens are free, want 97 and 40", l[0].Free, l[1].Free)
		}
	})
}

// What counts as spent after a crash is the most that can have started since
// the last writing: what the windows of the unit let through in two seconds, or
// twice what was seen in one. After a proper end it is what was spent.
func TestCrashCountsWhatMayHaveFollowed(t *testing.T) {
	day := Limit{N: 1000, Calendar: "day"}
	for _, c := range []struct {
		name   string
		limits []Limit
		n      int
		killed []int64 // free after so many crashes
	}{
		{"seen only", []Limit{day}, 20, []int64{1000 - 20 - 41, 1000 - 20 - 41 - 41}},
		{"short window", []Limit{day, {N: 5, Per: time.Second, Burst: 5}}, 5, []int64{1000 - 5 - (10 + 5 + 5)}},
		{"paced", []Limit{day, {N: 600, Per: time.Minute}}, 1, []int64{1000 - 1 - (20 + 1)}},
		{"window that moves on", []Limit{day, {N: 6, Per: 3 * time.Second, Burst: 6}}, 6, []int64{1000 - 6 - 6}},
		{"used up window", []Limit{day, {N: 6, Per: time.Minute, Burst: 6}}, 6, []int64{1000 - 6}},
		{"bucket", []Limit{day, {N: 60, Per: time.Minute, Burst: 7, Bucket: true}}, 7, []int64{1000 - 7 - (2 + 7)}},
		{"window", []Limit{{N: 20, Per: time.Minute, Burst: 10}}, 5, []int64{20 - 5 - (0 + 10)}},
		{"short bucket", []Limit{{N: 10, Per: 30 * time.Second, Burst: 40, Bucket: true}}, 0, []int64{0}},
	} {
		for _, killed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // after midnight
				cfg := Config{Name: "p", State: t.TempDir(), Limits: c.limits}
				g := newGate(t, cfg)
				defer func() { _ = g.Close() }()
				for range c.n {
					p, ok := g.TryAcquire(Call{})
					if !ok {
						t.Fatal(c.name, ": refused")
					}
					p.Release()
				}
				time.Sleep(1500 * time.Millisecond)
				before := g.Stats().Limits[0].Free
				if !killed {
					if err := g.Close(); err != nil {
						t.Fatal(err)
					}
					g = newGate(t, cfg)
					if free := g.Stats().Limits[0].Free; free != before {
						t.Errorf("%s: %d free after a proper end, %d before", c.name, free, before)
					}
					return
				}
				for i, want := range c.killed {
					crash(g)
					g = newGate(t, cfg)
					if free := g.Stats().Limits[0].Free; free != want {
						t.Errorf("%s: %d free after crash %d, want %d", c.name, free, i+1, want)
					}
				}
			})
		}
	}
}

// A limit that is new since a proper end has nothing spent.
func TestNewLimitAfterAProperEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "p", State: t.TempDir()}
		if err := newGate(t, cfg).Close(); err != nil {
			t.Fatal(err)
		}
		cfg.Limits = []Limit{{N: 5, Per: time.Minute, Burst: 5}}
		g := newGate(t, cfg)
		defer g.Close()
		if n := take(g); n != 5 {
			t.Errorf("%d starts of 5", n)
		}
	})
}
