package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"
)

// seen is what an estimator makes of its first look.
func seen(s Snapshot) view {
	var e estimator
	return e.observe(time.Unix(0, 0), s)
}

func pausedSample() Snapshot {
	s := sample()
	s.PausedFor, s.PauseReason = 41*time.Second, "Retry-After of geo-a"
	s.Rate, s.InFlight, s.Bound = 0, 0, "pause"
	return s
}

func TestLines(t *testing.T) {
	pipe := sample()
	pipe.Name, pipe.Total = "stdin", -1
	fresh := Snapshot{Name: "urls.txt", Total: 400, Concurrency: 16, Limit: "20/s", LimitPerSecond: 20}
	drain := sample()
	drain.State, drain.Failed, drain.Throttled, drain.Retries = "draining", 0, 0, 0

	for _, c := range []struct {
		name  string
		snap  Snapshot
		ascii bool
		width int
		want  [2]string
	}{
		{"all of it", sample(), false, 140, [2]string{
			"addresses.csv  412,310/1,000,000 41% ▕███████████▌                ▏  50.0/s of 50/s  ETA 3h15m  ok 412,102 · failed 208 · 429 12 · retry 31",
			"bound limit:50/s (98% of waits) · in flight 11/16 · p50 180 ms  p95 420 ms · elapsed 2h17m",
		}},
		{"a usual terminal", sample(), false, 80, [2]string{
			"412,310/1,000,000 41% ▕██▉    ▏  50.0/s of 50/s  ETA 3h15m  failed 208 · 429 12",
			"bound limit:50/s (98% of waits) · in flight 11/16 · p50 180 ms  p95 420 ms",
		}},
		{"a narrow terminal", sample(), false, 60, [2]string{
			"412,310/1,000,000 41%  50.0/s  ETA 3h15m  failed 208",
			"bound limit:50/s (98%) · in flight 11/16 · p95 420 ms",
		}},
		{"a sliver", sample(), false, 30, [2]string{
			"412,310/1,000,000 41%  50.0/s",
			"limit:50/s · in flight 11/16",
		}},
		{"ascii", sample(), true, 80, [2]string{
			"412,310/1,000,000 41% [##-----]  50.0/s of 50/s  ETA 3h15m  failed 208 - 429 12",
			"bound limit:50/s (98% of waits) - in flight 11/16 - p50 180 ms  p95 420 ms",
		}},
		{"paused", pausedSample(), false, 80, [2]string{
			"412,310/1,000,000 41% ▕████      ▏  0/s of 50/s  ETA 3h16m  failed 208 · 429 12",
			"paused 41s by Retry-After of geo-a · in flight  0/16 · p50 180 ms  p95 420 ms",
		}},
		{"paused and narrow", pausedSample(), false, 60, [2]string{
			"412,310/1,000,000 41% ▕██▉    ▏  0/s  ETA 3h16m  failed 208",
			"paused 41s by Retry-After of geo-a · in flight  0/16",
		}},
		{"unknown total", pipe, false, 80, [2]string{
			"stdin  412,310 rows  50.0/s of 50/s  for 2h17m  failed 208 · 429 12 · retry 31",
			"bound limit:50/s (98% of waits) · in flight 11/16 · p50 180 ms  p95 420 ms",
		}},
		{"no data yet", fresh, false, 80, [2]string{
			"urls.txt  0/400  0% ▕        ▏  0/s of 20/s  ETA –      ok 0 · failed 0 · 429 0",
			"bound – · in flight  0/16 · elapsed 0s",
		}},
		{"draining", drain, false, 60, [2]string{
			"412,310/1,000,000 41% ▕██▍   ▏  50.0/s  ETA 3h15m  failed 0",
			"draining · limit:50/s · in flight 11/16 · p95 420 ms",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := newPainter(false, c.ascii).lines(seen(c.snap), c.width-1)
			if got := [2]string{first, second}; got != c.want {
				t.Errorf("\n got %s|\n     %s|\nwant %s|\n     %s|", got[0], got[1], c.want[0], c.want[1])
			}
		})
	}
}

func TestLastLineTellsTheWholeRun(t *testing.T) {
	s := sample()
	s.Done, s.Resumed, s.Rate, s.Elapsed = s.Total, 500_000, 3, 10_000*time.Second
	got := newPainter(false, false).first(seen(s), 139, true)
	for _, want := range []string{"1,000,000/1,000,000 100% ", "  50.0/s of 50/s  in 2h46m  "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}

// Whatever the run is like, a line is never wider than the terminal, and
// colour changes nothing but colour.
func TestLinesFitAnyWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot().Draw(t, "snapshot")
		width := rapid.IntRange(0, 200).Draw(t, "width")
		ascii := rapid.Bool().Draw(t, "ascii")
		v := seen(s)
		bare, painted := newPainter(false, ascii), newPainter(true, ascii)
		a, b := bare.lines(v, width)
		x, y := painted.lines(v, width)
		if stripStyles(x) != a || stripStyles(y) != b {
			t.Fatalf("colour changes the text:\n%q\n%q", a, stripStyles(x))
		}
		for _, line := range []string{a, b, bare.first(v, width, true)} {
			if w := bare.width(line); w > width {
				t.Fatalf("%d > %d: %q", w, width, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("control character in %q", line)
			}
		}
	})
}

func anySnapshot() *rapid.Generator[Snapshot] {
	return rapid.Custom(func(t *rapid.T) Snapshot {
		n := func(name string) int64 { return rapid.Int64Range(-5, 2_000_000_000).Draw(t, name) }
		d := func(name string) time.Duration { return time.Duration(rapid.Int64().Draw(t, name)) }
		f := func(name string) float64 { return rapid.Float64().Draw(t, name) }
		text := func(name string) string { return rapid.String().Draw(t, name) }
		return Snapshot{
			Name: text("name"), State: text("state"),
			Total: n("total"), Done: n("done"), Resumed: n("resumed"), OK: n("ok"), Failed: n("failed"),
			Throttled: n("throttled"), Retries: n("retries"),
			InFlight: int(n("in flight")), Concurrency: int(n("concurrency")),
			Rate: f("rate"), Limit: rapid.SampledFrom([]string{"", "50/s", "500/m", "5/15s", "0/s", "x"}).Draw(t, "limit"),
			LimitPerSecond: f("per second"), RemainingCost: f("cost"), CostPerSecond: f("cost per second"),
			Bound: text("bound"), BoundShare: f("share"),
			P50: d("p50"), P95: d("p95"), PausedFor: d("paused"), PauseReason: text("reason"), Elapsed: d("elapsed"),
		}
	})
}

// A real terminal, with its line discipline, at the two widths that must work.
func TestPseudoTerminal(t *testing.T) {
	for _, width := range []int{80, 60} {
		for _, color := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d columns, color %v", width, color), func(t *testing.T) {
				master, tty, err := pty.Open()
				if err != nil {
					t.Fatal(err)
				}
				defer master.Close()
				if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: uint16(width)}); err != nil {
					t.Fatal(err)
				}
				s := newScreen(width)
				read := make(chan error, 1)
				go func() {
					_, err := io.Copy(s, master)
					read <- err
				}()

				env := map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"}
				if !color {
					env["NO_COLOR"] = "1"
				}
				o := Detect(tty, "auto", func(key string) string { return env[key] })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				looks := 0
				var p *Progress
				o.Snapshot = func() Snapshot {
					looks++
					v := sample()
					v.Done += int64(looks * 50_000)
					switch looks {
					case 2:
						v = pausedSample()
						p.Note("geo-a paused for 41 seconds: \x1b[31mRetry-After\x07 of a provider with a long explanation of why")
					case 4:
						cancel()
					}
					return v
				}
				p = New(o)
				p.Run(ctx)
				p.Close()
				p.Close()
				tty.Close()
				if err := <-read; err != nil && !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "input/output error") {
					t.Fatal(err)
				}
				for _, f := range s.faults {
					t.Error(f)
				}
				if err := s.atRest(); err != nil {
					t.Error(err)
				}
				if (s.styles > 0) != color {
					t.Errorf("%d colour sequences", s.styles)
				}
				rows := strings.Split(strings.TrimSuffix(s.text(), "\n"), "\n")
				if n := len(rows); n != 3 || !strings.HasPrefix(rows[0], "geo-a paused for 41 seconds: [31mRetry-After of") ||
					!strings.Contains(rows[2], "662,310/1,000,000 66%") {
					t.Errorf("screen at the end:\n%s", s.text())
				}
				for _, row := range rows {
					if w := runewidth.StringWidth(row); w > width {
						t.Errorf("%d wide: %s", w, row)
					}
				}
			})
		}
	}
}

func TestDetect(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer other.Close()
	for _, c := range []struct {
		name                   string
		f                      *os.File
		color, env             string
		terminal, colors, asci bool
	}{
		{"terminal", tty, "auto", "TERM=xterm", true, true, false},
		{"NO_COLOR", tty, "auto", "NO_COLOR=1", true, false, false},
		{"empty NO_COLOR says nothing", tty, "auto", "NO_COLOR=", true, true, false},
		{"dumb", tty, "auto", "TERM=dumb", false, false, false},
		{"dumb wins over always", tty, "always", "TERM=dumb", false, false, false},
		{"always wins over NO_COLOR", tty, "always", "NO_COLOR=1", true, true, false},
		{"never", tty, "never", "", true, false, false},
		{"pipe", other, "always", "", false, false, false},
		{"locale C", tty, "auto", "LC_ALL=C", true, true, true},
		{"locale UTF-8", tty, "auto", "LANG=de_DE.UTF-8", true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, value, _ := strings.Cut(c.env, "=")
			o := Detect(c.f, c.color, func(key string) string {
				if key == name {
					return value
				}
				return ""
			})
			if o.IsTerminal != c.terminal || o.Color != c.colors || o.ASCII != c.asci {
				t.Errorf("terminal %v, color %v, ascii %v", o.IsTerminal, o.Color, o.ASCII)
			}
		})
	}
}
