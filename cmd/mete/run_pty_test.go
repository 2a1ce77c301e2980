package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"
)

// terminal runs mete in dir with a terminal as its standard error and, if all,
// as the other two as well.
type terminal struct {
	*program
	tty *os.File
	out buffer
}

func openTerminal(t *testing.T, dir string, columns uint16, all bool, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("mete", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR=")
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{tty: master, program: &program{t: t, cmd: cmd, ended: make(chan struct{})}}
	cmd.Stderr = slave
	cmd.Stdout = &x.program.stdout
	if all {
		cmd.Stdin, cmd.Stdout = slave, slave
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			_, _ = x.out.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = cmd.Wait()
		<-read
		close(x.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-x.ended
		master.Close()
	})
	return x
}

// screenOf replays what was written to a terminal of some width and returns
// its rows, with all that scrolled away. It knows the few things that mete
// writes and fails at others.
func screenOf(t *testing.T, text string, columns int) (rows []string, cursor int) {
	t.Helper()
	screen := [][]rune{nil}
	row, col := 0, 0
	for len(text) > 0 {
		if m := csi.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			n, _ := strconv.Atoi(m[1])
			switch m[2] {
			case "A":
				row = max(0, row-n)
			case "K":
				screen[row] = screen[row][:min(col, len(screen[row]))]
			case "J":
				screen = screen[:row+1]
				screen[row] = screen[row][:min(col, len(screen[row]))]
			case "m":
			default:
				t.Fatalf("escape sequence %q", m[0])
			}
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch {
		case r == '\n':
			row, col = row+1, 0 // the terminal's own carriage return comes along
			for len(screen) <= row {
				screen = append(screen, nil)
			}
		case r == '\r':
			col = 0
		case r < ' ':
			t.Fatalf("control byte %q", r)
		default:
			for len(screen[row]) <= col {
				screen[row] = append(screen[row], ' ')
			}
			screen[row][col] = r
			col += runewidth.RuneWidth(r)
			if col > columns {
				t.Errorf("wider than %d columns: %q", columns, string(screen[row]))
				return nil, 0
			}
		}
	}
	for _, line := range screen {
		rows = append(rows, strings.TrimRight(string(line), " "))
	}
	return rows, row
}

var csi = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// Two lines, at any width, redrawn in place; afterwards the summary and a
// cursor at the start of a line.
func TestTerminalWidths(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{120, 80, 60, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
				if n%5 == 0 {
					w.WriteHeader(404)
				}
			})
			name := "a-rather-long-name-of-a-file-of-addresses.txt"
			if columns < len(name) {
				name = "addresses.txt" // the summary never breaks a name
			}
			write(t, dir, name, urls(p.URL, 1000)...)
			x := openTerminal(t, dir, uint16(columns), false, "run", name, "--rate", "100/s", "-o", "o")
			eventually(t, "three redraws", func() bool { return strings.Count(x.out.String(), "\x1b[2A") >= 3 })
			shown := x.out.String()
			rows, cursor := screenOf(t, shown[:strings.LastIndexByte(shown, '\n')+1], columns)
			if len(rows) != 3 || cursor != 2 || rows[2] != "" {
				t.Errorf("want two lines and the cursor below, got %q, row %d", rows, cursor)
			}
			if len(rows) > 1 && (!strings.Contains(rows[0], "%") || !strings.Contains(rows[1], "limit:100/s")) {
				t.Errorf("lines: %q", rows)
			}
			x.signal(syscall.SIGINT)
			x.exits(130)
			text := x.out.String()
			if strings.Contains(text, "?25l") && !strings.HasSuffix(text, "?25h") {
				t.Error("the cursor is hidden")
			}
			// Commands and paths stay whole, to be copied.
			whole, _, _ := strings.Cut(text, "  results ")
			rows, _ = screenOf(t, whole, columns)
			if len(rows) == 0 || !strings.Contains(strings.Join(rows, "\n"), "interrupted") || !strings.HasSuffix(text, "\n") {
				t.Errorf("end: %q", rows)
			}
			if n := strings.Count(strings.Join(rows, "\n"), " in flight "); n > 1 {
				t.Errorf("the progress was left behind %d times: %q", n, rows)
			}
		})
	}
}

// On a terminal without -o: a short line for each row, that hides what is
// secret and cannot move the cursor.
func TestTerminalShowsRecordsForPeople(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) { _, _ = w.Write([]byte("hello")) })
	write(t, dir, "urls.txt", p.URL+"/a", p.URL+"/%1B%5B2J", p.URL+"/b?key=secret-1")
	x := openTerminal(t, dir, 80, true, "run", "urls.txt", "-c", "1")
	x.exits(0)
	text := x.out.String()
	if strings.Contains(text, `{"v":1`) || !strings.Contains(text, "200  GET    "+p.URL+"/a  5 B") {
		t.Errorf("want short lines:\n%s", text)
	}
	if !strings.Contains(text, "-o FILE") {
		t.Errorf("no word of -o FILE:\n%s", text)
	}
	if strings.Contains(text, "secret-1") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("secret or escape:\n%q", text)
	}
}

// With nothing to read, a terminal is not waited for.
func TestTerminalWithoutInput(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, t.TempDir(), 80, true, "run")
	if d := x.exits(2); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if text := x.out.String(); !strings.Contains(text, "--rate N/UNIT") || !strings.Contains(text, "mete: name a file") {
		t.Errorf("no help:\n%s", text)
	}
	_, _ = screenOf(t, x.out.String(), 80)
}
