package progress

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Styles are SGR parameters; few of them, so that colour means something.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// field is a part of a line that can be said in fewer words, or not at all.
type field struct {
	sep   string   // goes before it, unless it is the first
	group int      // fields of a group that meet are joined by a dot instead
	forms []string // the longest first; none left means that it is dropped
	style string
	bar   bool // takes the room that is left
}

// painter draws the two lines of a terminal. It knows how, not when.
type painter struct {
	color bool
	ascii bool
	cond  runewidth.Condition
}

func newPainter(color, ascii bool) *painter {
	p := &painter{color: color, ascii: ascii}
	// Where only ASCII is safe, ambiguous characters may be wide.
	p.cond.EastAsianWidth = ascii
	return p
}

func (p *painter) width(s string) int { return p.cond.StringWidth(s) }

const (
	barLeast = 5
	barMost  = 30
	nameMost = 24
)

// The groups of fields.
const (
	_ = iota
	counters
	reasons
)

// lines returns the two lines, neither wider than width.
func (p *painter) lines(v view, width int) (string, string) {
	return p.first(v, width, false), p.second(v, width)
}

// first is the line that counts. The last one of a run says how long it took
// and how fast it was over all of it.
func (p *painter) first(v view, width int, last bool) string {
	const (
		name = iota
		rows
		share
		bar
		rate
		eta
		ok
		failed
		throttled
		retries
	)
	f := []field{
		name:      {forms: []string{v.Name}},
		rows:      {sep: "  "},
		share:     {sep: " "},
		bar:       {sep: " ", style: green, bar: true},
		rate:      {sep: "  "},
		eta:       {sep: "  "},
		ok:        {sep: "  ", group: counters, forms: []string{"ok " + Count(v.OK)}},
		failed:    {sep: "  ", group: counters, forms: []string{"failed " + Count(v.Failed)}},
		throttled: {sep: "  ", group: counters, forms: []string{"429 " + Count(v.Throttled)}},
		retries:   {sep: "  ", group: counters, forms: []string{"retry " + Count(v.Retries)}},
	}
	if p.width(v.Name) > nameMost {
		f[name].forms = []string{p.cond.Truncate(v.Name, nameMost, p.glyph("…"))}
	}
	if v.Total >= 0 {
		f[rows].forms = []string{Count(v.Done) + "/" + Count(v.Total)}
		f[share].forms = []string{fmt.Sprintf("%2d%%", v.permille/10)}
		f[bar].forms = []string{"bar"}
	} else {
		f[rows].forms = []string{Count(v.Done) + " rows"}
	}
	speed := v.Rate
	if last {
		speed = v.average
	}
	short := pace(speed, v.Limit, v.LimitPerSecond, -1)
	f[rate].forms = []string{short, short}
	if v.Limit != "" {
		f[rate].forms[0] += " of " + v.Limit
	}
	switch {
	case last:
		f[eta].forms = []string{"in " + clock(v.Elapsed)}
	case v.Total < 0:
		f[eta].forms = []string{"for " + clock(v.Elapsed)}
	case v.eta < 0:
		f[eta].forms = []string{"ETA " + p.glyph("–") + "    "}
	default:
		f[eta].forms = []string{fmt.Sprintf("ETA %-5s", clock(v.eta))}
	}
	var shrink []int
	if v.Retries == 0 {
		shrink = append(shrink, retries)
	}
	if v.Throttled == 0 {
		shrink = append(shrink, throttled)
	} else {
		f[throttled].style = yellow
	}
	if v.Failed > 0 {
		f[failed].style = red
	}
	shrink = append(shrink, ok, retries, name, rate, throttled, bar)
	if v.Failed == 0 {
		shrink = append(shrink, failed)
	}
	shrink = append(shrink, eta, failed, share, rate)
	return p.fit(f, shrink, width, v.permille)
}

// second is the line that explains: what the run waits for, and how the
// provider does.
func (p *painter) second(v view, width int) string {
	const (
		what = iota
		pause
		bound
		flight
		latency
		elapsed
	)
	f := []field{
		what:    {group: reasons, style: yellow},
		pause:   {group: reasons, style: yellow},
		bound:   {group: reasons, style: dim},
		flight:  {group: reasons, style: dim},
		latency: {group: reasons, style: dim},
		elapsed: {group: reasons, style: dim},
	}
	if v.State != "" {
		f[what].forms = []string{v.State, p.cond.Truncate(v.State, 20, p.glyph("…"))}
	}
	if v.PausedFor > 0 {
		text := "paused " + clock(max(v.PausedFor, 1e9))
		f[pause].forms = []string{text}
		if v.PauseReason != "" {
			f[pause].forms = []string{text + " by " + v.PauseReason, text}
		}
	}
	if v.Bound != "" {
		text, share := "bound "+v.Bound, Percent(v.BoundShare)
		f[bound].forms = []string{text + " (" + share + " of waits)", text + " (" + share + ")", v.Bound}
	} else {
		f[bound].forms = []string{"bound " + p.glyph("–")}
	}
	if v.Concurrency > 0 {
		limit := strconv.Itoa(v.Concurrency)
		used := fmt.Sprintf("%*d/%s", len(limit), v.InFlight, limit)
		f[flight].forms = []string{"in flight " + used}
	} else {
		f[flight].forms = []string{"in flight " + strconv.Itoa(v.InFlight)}
	}
	if v.P50 > 0 || v.P95 > 0 {
		slow := fmt.Sprintf("p95 %6s", span(v.P95))
		f[latency].forms = []string{fmt.Sprintf("p50 %6s  ", span(v.P50)) + slow, slow}
	}
	if v.Total >= 0 {
		f[elapsed].forms = []string{"elapsed " + clock(v.Elapsed)}
	}
	shrink := []int{elapsed, bound, latency, what, bound, latency, bound, flight, what}
	if v.PausedFor > 0 {
		shrink = []int{elapsed, bound, bound, bound, latency, what, latency, pause, flight, what}
	}
	return p.fit(f, shrink, width, unknown)
}

// fit shortens the fields in the order of shrink until the line is at most
// width wide, gives the bar what is left, and paints the line.
func (p *painter) fit(fields []field, shrink []int, width int, permille int64) string {
	used := p.width(p.join(fields, barLeast, permille, false))
	for _, i := range shrink {
		if used <= width {
			break
		}
		if len(fields[i].forms) > 0 {
			fields[i].forms = fields[i].forms[1:]
		}
		used = p.width(p.join(fields, barLeast, permille, false))
	}
	if used > width {
		return p.cond.Truncate(p.join(fields, barLeast, permille, false), max(width, 0), "")
	}
	return strings.TrimRight(p.join(fields, min(barLeast+width-used, barMost), permille, p.color), " ")
}

// join puts the fields side by side.
func (p *painter) join(fields []field, bar int, permille int64, color bool) string {
	var b strings.Builder
	before := -1
	for i := range fields {
		f := &fields[i]
		if len(f.forms) == 0 || f.forms[0] == "" {
			continue
		}
		switch {
		case before < 0:
		case f.group != 0 && f.group == fields[before].group:
			b.WriteString(p.paint(p.glyph(" · "), dim, color))
		default:
			b.WriteString(f.sep)
		}
		before = i
		text := f.forms[0]
		if f.bar {
			text = p.bar(permille, bar)
		}
		b.WriteString(p.paint(text, f.style, color))
	}
	return b.String()
}

// bar is size cells between two edges, in steps of an eighth of a cell.
func (p *painter) bar(permille int64, size int) string {
	if p.ascii {
		full := int(permille) * size / allOfThem
		return "[" + strings.Repeat("#", full) + strings.Repeat("-", size-full) + "]"
	}
	eighths := int(permille) * size * 8 / allOfThem
	full, part := eighths/8, eighths%8
	text := strings.Repeat("█", full)
	if part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
		full++
	}
	return "▕" + text + strings.Repeat(" ", size-full) + "▏"
}

func (p *painter) paint(text, style string, color bool) string {
	if !color || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

var asciiGlyphs = strings.NewReplacer("·", "-", "–", "-", "…", "~")

func (p *painter) glyph(s string) string {
	if p.ascii {
		return asciiGlyphs.Replace(s)
	}
	return s
}
