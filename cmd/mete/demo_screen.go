package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// screen is where something is shown. Between two writes the cursor rests at
// the start of the line below, so nothing has to be restored.
type screen struct {
	out      io.Writer
	terminal bool // can move its cursor
	color    bool
	ascii    bool
	columns  func() int
}

func newScreen(w io.Writer) screen {
	s := screen{out: w, columns: func() int { return 80 }}
	f, ok := w.(*os.File)
	if !ok {
		return s
	}
	o := progress.Detect(f, "auto", os.Getenv)
	s.terminal, s.color, s.ascii = o.IsTerminal, o.Color, o.ASCII
	s.columns = func() int {
		if n := o.Width(); n > 0 {
			return n
		}
		return 80
	}
	return s
}

// Styles, as SGR parameters.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s screen) paint(text, style string) string {
	if !s.color || style == "" || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// introduce says what is about to happen.
func (d *demo) introduce() {
	var names []string
	for _, p := range d.places[:min(3, len(d.places))] {
		names = append(names, p.Name)
	}
	etc := ""
	if !d.live.ascii {
		etc = " (" + strings.Join(names, ", ") + ", …)"
	}
	d.live.remark("Looking up %d places%s at a provider that takes %s: first as usual, then with mete.", len(d.places), etc, inWords(d.limit))
}

func inWords(l stub.Limit) string {
	if l.Per == time.Second {
		return fmt.Sprintf("%d calls a second", l.N)
	}
	return fmt.Sprintf("%d calls per %v", l.N, l.Per)
}

const (
	redraw = 100 * time.Millisecond
	report = 5 * time.Second // between two lines where the cursor cannot move
)

// follow shows how the sides get on until done is closed.
func (s screen) follow(sides []*side, done <-chan struct{}) {
	every := report
	if s.terminal {
		every = redraw
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	drawn, last := 0, make([]time.Duration, len(sides))
	show := func() {
		if !s.terminal {
			for i, side := range sides {
				if at := side.elapsed(); at > 0 && at != last[i] {
					fmt.Fprintln(s.out, s.status(side, 0))
					last[i] = at
				}
			}
			return
		}
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA\r", drawn)
		}
		for _, side := range sides {
			b.WriteString(s.status(side, s.columns()-1) + "\x1b[K\n")
		}
		b.WriteString("\x1b[J")
		drawn = len(sides)
		io.WriteString(s.out, b.String())
	}
	for {
		if s.terminal {
			show()
		}
		select {
		case <-tick.C:
			if !s.terminal {
				show()
			}
		case <-done:
			show()
			fmt.Fprintln(s.out)
			return
		}
	}
}

// status is one line about a side as its provider sees it: with a bar where
// there is a width to fill, and never wider than that.
func (s screen) status(side *side, width int) string {
	a := side.provider.Audit()
	answers := int(a.Statuses["200"] - a.RepeatedAnswers)
	count := fmt.Sprintf(" %3d/%d %5.1f s", answers, side.total, side.elapsed().Seconds())
	refused := fmt.Sprintf("  %5s rejected", progress.Count(a.Rejected))
	long := fmt.Sprintf("  %-5s  %-11s ", side.name, side.how)
	if width <= 0 {
		return long + count + refused
	}
	const edges, least, most = 2, 10, 30
	name, size := long, width-len(long)-len(count)-len(refused)-edges
	if size < least {
		name = fmt.Sprintf("  %-5s ", side.name)
		size += len(long) - len(name)
	}
	if size < least {
		return runewidth.Truncate(name+count+refused, width, "")
	}
	barStyle, refusedStyle := yellow, faint
	if side.name == "mete" {
		barStyle = green
	}
	if a.Rejected > 0 {
		refusedStyle = red
	}
	return s.paint(name, bold) + s.paint(s.bar(answers, side.total, min(size, most)), barStyle) + count + s.paint(refused, refusedStyle)
}

func (s screen) bar(n, of, size int) string {
	eighths := n * size * 8 / max(of, 1)
	full, part := eighths/8, eighths%8
	if s.ascii {
		return "[" + strings.Repeat("#", full) + strings.Repeat("-", size-full) + "]"
	}
	text := strings.Repeat("█", full)
	if part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
		full++
	}
	return "▕" + text + strings.Repeat(" ", size-full) + "▏"
}

// compare prints what the providers saw, side by side, and what it means.
func (d *demo) compare(sides []*side) {
	type cell struct{ text, style string }
	type row struct {
		label string
		cells []cell
		note  string
	}
	limit := float64(d.limit.N) / d.limit.Per.Seconds()
	busiest := "busiest second"
	if d.limit.Per != time.Second {
		busiest = "busiest " + d.limit.Per.String()
	}
	rows := []row{
		{label: ""},
		{label: "calls", note: fmt.Sprintf("for %d places", len(d.places))},
		{label: "rejected (429)", note: "by the provider"},
		{label: "repeats", note: "no new answer"},
		{label: "time"},
		{label: "rate used", note: "of " + d.limit.String()},
		{label: busiest, note: fmt.Sprintf("%d are allowed", d.limit.N)},
		{label: "bound"},
	}
	judge := func(good bool) string {
		if good {
			return green
		}
		return red
	}
	for _, s := range sides {
		a := s.provider.Audit()
		answers := a.Statuses["200"] - a.RepeatedAnswers
		repeats := a.Requests - answers
		most := a.MaxStarts[d.limit.Per.String()]
		bound := cell{text: s.bound}
		if s.bound == "" {
			bound = cell{"unknown", faint}
		} else {
			rows[7].note = progress.Percent(s.share) + " of its waits"
		}
		used := 0.0
		if a.SpanMS > 0 {
			// The first calls of a window may come at once: not above 100 %.
			used = min(float64(a.Accepted-1)/(a.SpanMS/1e3)/limit, 1)
		}
		for i, c := range []cell{
			{s.name, bold},
			{progress.Count(a.Requests), ""},
			{progress.Count(a.Rejected), judge(a.Rejected == 0)},
			{progress.Count(repeats), judge(repeats == 0)},
			{fmt.Sprintf("%.1f s", s.elapsed().Seconds()), ""},
			{progress.Percent(used), ""},
			{progress.Count(most), judge(most <= d.limit.N)},
			bound,
		} {
			rows[i].cells = append(rows[i].cells, c)
		}
	}

	out := d.table
	room := out.columns() - 1
	for _, r := range rows {
		line := fmt.Sprintf("  %-14s", r.label)
		used := runewidth.StringWidth(line)
		for _, c := range r.cells {
			text := fmt.Sprintf("%12s", c.text)
			line += out.paint(text, c.style)
			used += runewidth.StringWidth(text)
		}
		if note := "   " + r.note; r.note != "" && used+len(note) <= room {
			line += out.paint(note, faint)
		}
		fmt.Fprintln(out.out, line)
	}
	fmt.Fprintln(out.out)
	for _, s := range sides {
		a := s.provider.Audit()
		if answers := int(a.Statuses["200"] - a.RepeatedAnswers); answers < s.total {
			out.remark("%s was stopped after %.0f s: it had %d of %d answers.", s.name, s.elapsed().Seconds(), answers, s.total)
		}
		if s.bound != "" && a.Rejected > 0 && a.MaxStallMS > lateMS {
			out.remark("This machine is busy: the provider itself was up to %.0f ms late, so calls that started apart arrived together.", a.MaxStallMS)
		}
	}
}

// lateMS is how late a provider may be that allows so many calls a second,
// before the calls of one second arrive in another.
const lateMS = 5

// remark prints a sentence, in lines that fit.
func (s screen) remark(format string, args ...any) {
	used := 0
	for i, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		w := runewidth.StringWidth(word)
		switch {
		case i == 0:
		case used+1+w > min(s.columns()-1, 79):
			fmt.Fprintln(s.out)
			used = 0
		default:
			io.WriteString(s.out, " ")
			used++
		}
		io.WriteString(s.out, word)
		used += w
	}
	io.WriteString(s.out, "\n\n")
}

// tryNext prints commands that work as they stand.
func (d *demo) tryNext() {
	self := d.self
	if filepath.IsAbs(self) || self == "" {
		self = "mete"
	}
	seq := "seq -f 'http://127.0.0.1:7070/%g' 400 | "
	run := self + " run --rate 20/s -o out.jsonl"
	if runewidth.StringWidth("  "+seq+run) >= d.table.columns() {
		seq += "\n    "
	}
	d.table.remark("Try next (Ctrl-C in the middle of the second, then add --resume):")
	fmt.Fprintf(d.table.out, "  %s stub --listen 127.0.0.1:7070 --limit 20/s &\n", self)
	fmt.Fprintf(d.table.out, "  %s%s\n", seq, run)
	fmt.Fprintf(d.table.out, "  %s plan --rate 500/m --latency 2.5s\n", self)
}
