package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/metehq/mete/cmd/mete/internal/places"
	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// asProgram makes the test binary be mete: the demonstration starts itself.
const asProgram = "METE_TEST_AS_PROGRAM"

func init() {
	if os.Getenv(asProgram) != "" {
		os.Exit(run())
	}
}

// smallDemo is over in two seconds. Its naive side sends twice as many calls at
// once as its provider takes in a second.
func smallDemo(t *testing.T) (d demo, live, table *bytes.Buffer) {
	t.Helper()
	t.Setenv(asProgram, "1")
	t.Setenv("TMPDIR", t.TempDir())
	live, table = &bytes.Buffer{}, &bytes.Buffer{}
	return demo{
		places: places.All()[:20], limit: stub.Limit{N: 10, Per: time.Second}, workers: 64, patience: time.Minute,
		self: "bin/mete", live: newScreen(live), table: newScreen(table),
	}, live, table
}

// figures reads the rows of the table: label, naive, mete.
func figures(t *testing.T, table string) map[string][2]string {
	t.Helper()
	rows := map[string][2]string{}
	line := regexp.MustCompile(`(?m)^  (\S.{13}) +(\S+(?: s)?) +(\S+(?: s)?)(?:   .*)?$`)
	for _, m := range line.FindAllStringSubmatch(table, -1) {
		rows[strings.TrimSpace(m[1])] = [2]string{m[2], m[3]}
	}
	return rows
}

func TestDemo(t *testing.T) {
	d, live, table := smallDemo(t)
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := figures(t, table.String())
	number := func(label string, side int) int {
		n, err := strconv.Atoi(strings.TrimSuffix(rows[label][side], "%"))
		if err != nil {
			t.Errorf("%s: %v in\n%s", label, err, table)
		}
		return n
	}
	for side, name := range []string{"naive", "mete"} {
		calls, rejected, repeats := number("calls", side), number("rejected (429)", side), number("repeats", side)
		if calls-rejected != 20 || repeats != rejected {
			t.Errorf("%s: %d calls, %d rejected, %d repeats; want 20 accepted ones", name, calls, rejected, repeats)
		}
		if used := number("rate used", side); used < 1 || used > 100 {
			t.Errorf("%s: used %d %%", name, used)
		}
		if !strings.HasSuffix(rows["time"][side], " s") {
			t.Errorf("%s: time %q", name, rows["time"][side])
		}
	}
	if number("rejected (429)", 0) == 0 || number("busiest second", 0) <= 10 {
		t.Errorf("the naive side was not refused:\n%s", table)
	}
	if got := rows["bound"]; got[0] != "unknown" || !strings.HasPrefix(got[1], "limit:") && got[1] != "pause" {
		t.Errorf("bound %q", got)
	}
	if !strings.Contains(table.String(), "bin/mete run --rate 20/s") {
		t.Errorf("nothing to try next, by the name that was typed:\n%s", table)
	}
	if text := live.String() + table.String(); strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("escape bytes off a terminal: %q", text)
	}
	if !strings.Contains(live.String(), "20/20") {
		t.Errorf("no progress:\n%s", live)
	}
	nothingLeft(t)
}

func nothingLeft(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "mete-demo-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDemoInterrupted(t *testing.T) {
	d, _, table := smallDemo(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	err := d.run(ctx)
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != 130 || table.Len() > 0 {
		t.Errorf("%v, want exit code 130 and no table:\n%s", err, table)
	}
	nothingLeft(t)
}

// A side that does not come to an end is stopped, and the table says so.
func TestDemoEndsByItself(t *testing.T) {
	d, _, table := smallDemo(t)
	d.limit, d.patience = stub.Limit{N: 5, Per: time.Hour}, 600*time.Millisecond
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`naive was stopped after 1 s: it had \d of 20 answers\.`).MatchString(table.String()) {
		t.Errorf("%s", table)
	}
	nothingLeft(t)
}

// Nothing of what is shown is wider than the terminal, save commands.
func TestDemoFits(t *testing.T) {
	d, live, table := smallDemo(t)
	provider := stub.New(stub.Config{Limits: []stub.Limit{d.limit}})
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	sides := []*side{
		{name: "naive", how: "64 workers", provider: provider, total: 400, took: 28 * time.Second},
		{name: "mete", how: "--rate 20/s", provider: provider, total: 400, took: 20 * time.Second, bound: "limit:20/s", share: 1},
	}
	for width := 40; width <= 120; width += 4 {
		for _, ascii := range []bool{false, true} {
			live.Reset()
			table.Reset()
			d.live.columns = func() int { return width }
			d.table.columns = d.live.columns
			d.live.ascii, d.table.ascii = ascii, ascii
			d.introduce()
			for _, s := range sides {
				live.WriteString(d.live.status(s, width-1) + "\n")
			}
			d.compare(sides)
			text := live.String()
			if width >= 44 {
				text += table.String()
			}
			for line := range strings.Lines(text) {
				if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w >= width {
					t.Errorf("%d columns of %d: %q", w, width, line)
				}
			}
			if bar := strings.ContainsAny(live.String(), "▕["); bar != (width >= 56) {
				t.Errorf("%d columns: a bar is %v:\n%s", width, bar, live)
			}
			if ascii && strings.ContainsFunc(live.String(), func(r rune) bool { return r > 126 }) {
				t.Errorf("not ASCII: %s", live)
			}
		}
	}
}
