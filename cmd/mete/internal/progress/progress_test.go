package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tape records each write with its time.
type tape struct {
	mu     sync.Mutex
	writes []string
	at     []time.Duration
	start  time.Time
}

func newTape() *tape { return &tape{start: time.Now()} }

func (p *tape) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, string(b))
	p.at = append(p.at, time.Since(p.start))
	return len(b), nil
}

func (p *tape) text() string { return strings.Join(p.writes, "") }

// run runs progress in a bubble for d, with during called at its start.
func run(t *testing.T, o Options, d time.Duration, during func(*Progress)) {
	t.Helper()
	p := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	if during != nil {
		during(p)
	}
	time.Sleep(d)
	cancel()
	p.Close()
	wg.Wait()
}

// moving is a run of 50 rows per second from now on.
func moving() func() Snapshot {
	start := time.Now()
	return func() Snapshot {
		s := sample()
		s.Elapsed = time.Since(start)
		s.Done, s.OK, s.Failed = int64(s.Elapsed.Seconds()*50), int64(s.Elapsed.Seconds()*50), 0
		return s
	}
}

func TestTerminalIsRedrawnAtMostTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		run(t, Options{Out: out, IsTerminal: true, Snapshot: moving()}, 10*time.Second, func(p *Progress) {
			go func() { // a flood of notes does not change that
				for i := range 1000 {
					p.Note(fmt.Sprint("note ", i))
					time.Sleep(7 * time.Millisecond)
				}
			}()
		})
		for i := range out.at {
			n := 0
			for _, at := range out.at[i:] {
				if at-out.at[i] < time.Second {
					n++
				}
			}
			if n > 10 && out.at[i] < 9*time.Second { // Close writes once more
				t.Fatalf("%d writes in the second from %v", n, out.at[i])
			}
		}
		if len(out.at) < 40 {
			t.Errorf("only %d redraws in 10 s", len(out.at))
		}
		if !strings.Contains(out.text(), "note 999") {
			t.Error("a note is missing")
		}
	})
}

func TestTerminalIsLeftAloneWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		pipe := sample()
		pipe.Total = -1 // no estimate that grows while nothing completes
		run(t, Options{Out: out, IsTerminal: true, Snapshot: func() Snapshot { return pipe }}, time.Minute, nil)
		if n := len(out.writes); n != 2 {
			t.Errorf("%d writes of the same lines", n)
		}
	})
}

// Every prefix of the output leaves whole lines and a visible cursor below
// them: so does a program that is killed.
func TestEveryWriteLeavesTheTerminalUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		width := 80
		o := Options{Out: out, IsTerminal: true, Color: true, Snapshot: moving(), Width: func() int { return width }}
		run(t, o, 3*time.Second, func(p *Progress) { p.Note("geo-b is parked until 10:41"); p.Now() })
		s := newScreen(80)
		for _, w := range out.writes {
			fmt.Fprint(s, w)
			if err := s.atRest(); err != nil {
				t.Fatalf("after %q: %v", w, err)
			}
		}
		if len(s.faults) > 0 {
			t.Error(s.faults)
		}
	})
}

// A shell that has put the program to sleep has written to the screen.
func TestScreenIsNotOverwrittenAfterASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		p := New(Options{Out: out, IsTerminal: true})
		p.look(sample())
		time.Sleep(time.Minute)
		p.look(sample())
		if last := out.writes[len(out.writes)-1]; len(out.writes) != 2 || strings.Contains(last, "A\r") {
			t.Errorf("the cursor moves up into the shell's lines: %q", last)
		}
	})
}

func TestNarrowedTerminalLeavesNoRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		width := 80
		p := New(Options{Out: out, IsTerminal: true, Width: func() int { return width }})
		p.look(sample())
		width = 40 // the terminal has wrapped both lines into two rows each
		p.look(sample())
		if last := out.writes[1]; !strings.HasPrefix(last, "\x1b[4A\r") {
			t.Errorf("%q", last)
		}
	})
}

func TestPlainCadence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		run(t, Options{Out: out, Snapshot: moving()}, 10*time.Minute+time.Second, nil)
		var want []time.Duration
		for at := 10 * time.Second; at <= 5*time.Minute; at += 10 * time.Second {
			want = append(want, at)
		}
		for at := 6 * time.Minute; at <= 10*time.Minute; at += time.Minute {
			want = append(want, at)
		}
		want = append(want, 10*time.Minute+time.Second) // the end
		if fmt.Sprint(out.at) != fmt.Sprint(want) {
			t.Errorf("lines at\n%v, want\n%v", out.at, want)
		}
		const first = "time=2000-01-01T00:00:10Z name=addresses.csv state=running elapsed_s=10 done=500 total=1000000 percent=0 " +
			"eta_s=19990 resumed=0 ok=500 failed=0 throttled=12 retries=31 rate=49.98 limit=50/s in_flight=11 concurrency=16 " +
			"bound=limit:50/s bound_share=0.983 p50_ms=180 p95_ms=420\n"
		if out.writes[0] != first {
			t.Errorf("\n got %swant %s", out.writes[0], first)
		}
	})
}

func TestStateChangeGetsALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		base := moving()
		o := Options{Out: out, Snapshot: func() Snapshot {
			s := base()
			if s.Elapsed >= 3*time.Second && s.Elapsed < 7*time.Second {
				s.PausedFor, s.PauseReason = 7*time.Second-s.Elapsed, "Retry-After of geo-a"
			}
			if s.Elapsed >= 11*time.Second { // flickers
				s.State = []string{"", "fallback to geo-b"}[s.Elapsed.Milliseconds()/200%2]
			}
			return s
		}}
		run(t, o, 14500*time.Millisecond, nil)
		var got []string
		for i, w := range out.writes {
			_, rest, _ := strings.Cut(w, "state=")
			state, _, _ := strings.Cut(rest, " elapsed")
			got = append(got, fmt.Sprint(out.at[i], " ", state))
		}
		want := []string{"3s paused", "7s running", "11s \"fallback to geo-b\""}
		if len(got) < 4 || fmt.Sprint(got[:3]) != fmt.Sprint(want) || len(got) > 8 {
			t.Errorf("lines %q, want %q and at most one a second", got, want)
		}
		if !strings.Contains(out.writes[0], ` paused_s=4 pause_reason="Retry-After of geo-a"`) {
			t.Error(out.writes[0])
		}
	})
}

func TestNoEscapeByteOffATerminal(t *testing.T) {
	for _, mode := range []Mode{Auto, Bar, Plain, JSON, None} {
		synctest.Test(t, func(t *testing.T) {
			out := newTape()
			o := Options{Out: out, Mode: mode, Color: true, Snapshot: func() Snapshot {
				s := pausedSample()
				s.Name, s.PauseReason, s.Bound = "\x1b[2Jevil\n.csv", "a\u009b31mb\r\nc", "limit:\x1b]0;x\x07"
				return s
			}}
			run(t, o, time.Minute, func(p *Progress) { p.Note("\x1b[31mred\nnext"); p.Now() })
			text := out.text()
			if strings.ContainsAny(text, "\x1b\r\x07\u009b") {
				t.Errorf("%s: %q", mode, text)
			}
			if !strings.Contains(text, "next") || !strings.HasSuffix(text, "\n") {
				t.Errorf("%s: %q", mode, text)
			}
		})
	}
}

func TestJSONIsOneObjectPerLineWithTheSameKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newTape()
		o := Options{Out: out, Mode: JSON, IsTerminal: true, Snapshot: moving()}
		run(t, o, 61*time.Second, func(p *Progress) { p.Note(`a "note" <b>`) })
		lines := strings.Split(strings.TrimSuffix(out.text(), "\n"), "\n")
		if len(lines) != 8 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, line := range lines {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if _, ok := m["note"]; ok {
				continue
			}
			if len(m) != 24 || m["paused_s"] != nil || m["limit"] != "50/s" {
				t.Errorf("%d keys: %s", len(m), line)
			}
		}
		if !strings.Contains(lines[0], `"note":"a \"note\" <b>"`) {
			t.Error(lines[0])
		}
	})
}

func TestQuietAnswersOnlyToNow(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			out := newTape()
			run(t, Options{Out: out, Quiet: true, IsTerminal: terminal, Snapshot: moving()}, time.Minute, func(p *Progress) {
				p.Note("a note")
				time.Sleep(30*time.Second + 50*time.Millisecond)
				p.Now()
			})
			if len(out.writes) != 1 || out.at[0] != 30*time.Second+50*time.Millisecond || !strings.Contains(out.writes[0], "done=1502") {
				t.Errorf("%v %q", out.at, out.writes)
			}
		})
	}
}

// Nobody who has something to say waits for a terminal that has been stopped.
func TestNoteDoesNotWaitForTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		out := newTape()
		p := New(Options{Out: blocking{release, out}, Mode: None})
		go p.Run(t.Context())
		for i := range 1000 {
			p.Note(fmt.Sprint("note ", i))
			p.Now()
			if i == 0 {
				synctest.Wait()
			}
		}
		close(release)
		p.Close()
		if text := out.text(); !strings.Contains(text, "note 0\n") || !strings.Contains(text, "and 743 more notes\n") {
			t.Errorf("%q", text)
		}
		p.Note("too late")
		p.Run(t.Context()) // returns at once
		if strings.Contains(out.text(), "too late") {
			t.Error("a write after Close")
		}
	})
}

type blocking struct {
	release chan struct{}
	out     *tape
}

func (b blocking) Write(p []byte) (int, error) {
	<-b.release
	return b.out.Write(p)
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &broken{}
		run(t, Options{Out: out, IsTerminal: true, Snapshot: moving()}, time.Minute, nil)
		if out.calls != 1 {
			t.Errorf("%d writes", out.calls)
		}
	})
}

type broken struct{ calls int }

func (b *broken) Write([]byte) (int, error) { b.calls++; return 0, errors.New("gone") }

func TestParseMode(t *testing.T) {
	if m, err := ParseMode(""); m != Auto || err != nil {
		t.Error(m, err)
	}
	if m, err := ParseMode("json"); m != JSON || err != nil {
		t.Error(m, err)
	}
	if _, err := ParseMode("fancy"); err == nil || !strings.Contains(err.Error(), "use auto, bar, plain, json or none") {
		t.Error(err)
	}
}
