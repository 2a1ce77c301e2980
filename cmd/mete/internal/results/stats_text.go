package results

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

const (
	labels    = 11 // columns of the labels on the left, and two before
	topErrors = 10
	topGroups = 20
	widestBar = 48
)

// WriteText writes s for people, at most width columns wide where there is a
// place to break. ascii draws with # and <= alone.
func (s *Stats) WriteText(w io.Writer, width int, ascii bool) error {
	t := &page{width: max(width, 30), bar: "▇", atMost: "≤ ", cut: "…"}
	if ascii {
		t.bar, t.atMost, t.cut = "#", "<= ", "..."
	}
	t.wrapped("", s.headline(), ", ")
	t.blank()
	total := s.Total
	t.entry("records", total.outcomes())
	t.entry("status", total.statuses())
	t.entry("attempts", fmt.Sprintf("%s · retries %s · 429 %s", progress.Count(total.Attempts), progress.Count(total.Retries), progress.Count(total.Throttled)))
	if total.starts.n > 1 {
		most := total.starts.most(time.Second, time.Minute)
		t.entry("rate", fmt.Sprintf("mean %s · most in any second %s · in any minute %s", rateText(total.starts.mean()), progress.Count(most[0]), progress.Count(most[1])))
	}
	if q := total.latency.quantiles(); q.Count > 0 {
		t.entry("latency", fmt.Sprintf("p50 %s · p90 %s · p95 %s · p99 %s · max %s", span(q.P50), span(q.P90), span(q.P95), span(q.P99), span(q.Max)))
		t.histogram(total.latency.buckets(), q.Count)
	}
	t.entry("cost", total.costs())
	t.entry("waits", total.waitShares())
	t.entry("bodies", total.bodies())
	if len(total.Kinds) > 0 {
		t.blank()
		t.errors(total.Kinds)
	}
	if s.By != NoGroup && len(s.Groups) > 0 {
		t.blank()
		t.groups(string(s.By), s.sorted())
	}
	out := t.b.String()
	if ascii {
		out = strings.Map(toASCII, out)
	}
	_, err := io.WriteString(&diskWriter{w}, out)
	return err
}

// toASCII replaces what is left; names may hold anything.
func toASCII(r rune) rune {
	switch {
	case r < 128:
		return r
	case r == '·':
		return '|'
	case r == '×':
		return 'x'
	case r == '–':
		return '-'
	case r == 'µ':
		return 'u'
	}
	return '?'
}

func (s *Stats) headline() string {
	what := progress.Printable(s.Files[0])
	if len(s.Files) > 1 {
		what = plural(int64(len(s.Files)), "file")
	}
	h := what + ": " + plural(s.Total.Records, "record")
	if s.Runs > 1 {
		h += fmt.Sprintf(" of %s runs", progress.Count(s.Runs))
	}
	if d := s.duration(); d > 0 {
		h += ", " + span(d) + " from the first to the last"
	}
	return h
}

func (s *Stats) duration() time.Duration {
	if s.FirstAt == math.MaxInt64 || s.LastEnd == math.MinInt64 || s.LastEnd-s.FirstAt > math.MaxInt64/1_000_000 {
		return 0
	}
	return time.Duration(s.LastEnd-s.FirstAt) * time.Millisecond
}

// sorted returns the groups, the largest first.
func (s *Stats) sorted() []*Totals {
	gs := slices.Clone(s.Groups)
	slices.SortStableFunc(gs, func(a, b *Totals) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Name, b.Name))
	})
	return gs
}

func (t *Totals) outcomes() string {
	if t.Records == 0 {
		return "0"
	}
	failed := t.Records - t.OK
	return fmt.Sprintf("ok %s (%s) · failed %s", progress.Count(t.OK), progress.Percent(float64(t.OK)/float64(t.Records)), progress.Count(failed))
}

func (t *Totals) statuses() string {
	codes := slices.SortedFunc(maps.Keys(t.Statuses), func(a, b int) int {
		return cmp.Or(cmp.Compare(t.Statuses[b], t.Statuses[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, code := range codes {
		name := strconv.Itoa(code)
		if code == 0 {
			name = "none"
		}
		parts = append(parts, name+" × "+progress.Count(t.Statuses[code]))
	}
	return strings.Join(parts, " · ")
}

// costs says what records cost, by unit.
func (t *Totals) costs() string {
	var parts []string
	for _, unit := range slices.Sorted(maps.Keys(t.Costs)) {
		c := t.Costs[unit]
		s := progress.Count(whole(c.True)) + " " + progress.Printable(unit)
		if c.Estimate != c.True {
			s += " (estimated " + progress.Count(whole(c.Estimate)) + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}

// whole is a sum of costs as a count; a file may hold any number.
func whole(f float64) int64 { return int64(math.Round(max(min(f, 1e15), -1e15))) }

// waitShares says what calls waited for, the longest first.
func (t *Totals) waitShares() string {
	sum := t.waited()
	var parts []string
	for _, bound := range t.bounds() {
		s := t.Waits[bound]
		parts = append(parts, fmt.Sprintf("%s %s (%s)", progress.Printable(bound), progress.Percent(s/sum), span(time.Duration(min(s, 9e9)*1e9))))
	}
	return strings.Join(parts, " · ")
}

func (t *Totals) waited() (sum float64) {
	for _, bound := range t.bounds() { // in order: the sum of floats depends on it
		sum += t.Waits[bound]
	}
	return sum
}

func (t *Totals) bounds() []string {
	return slices.SortedFunc(maps.Keys(t.Waits), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Waits[b], t.Waits[a]), cmp.Compare(a, b))
	})
}

func (t *Totals) bodies() string {
	if t.Bytes == 0 {
		return ""
	}
	s := bytesText(t.Bytes)
	if t.Truncated > 0 {
		s += " · truncated " + progress.Count(t.Truncated)
	}
	return s
}

// kinds returns the kinds of errors, the most frequent first.
func kinds(m map[string]*Kind) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b].Count, m[a].Count), cmp.Compare(a, b))
	})
}

// page lays out lines with labels on the left.
type page struct {
	b                strings.Builder
	width            int
	bar, atMost, cut string
}

func (t *page) blank() { t.b.WriteByte('\n') }

// entry writes one labelled list, or nothing if there is nothing to say.
func (t *page) entry(label, s string) {
	if s != "" {
		t.wrapped(fmt.Sprintf("  %-*s", labels, label), s, " · ")
	}
}

// wrapped breaks s between its items.
func (t *page) wrapped(prefix, s, separator string) {
	used := len(prefix)
	t.b.WriteString(prefix)
	for i, item := range strings.Split(s, separator) {
		w := runewidth.StringWidth(item)
		switch {
		case i == 0:
		case used+len([]rune(separator))+w > t.width:
			t.b.WriteString(strings.TrimRight(separator, " ·") + "\n" + strings.Repeat(" ", max(len(prefix), 2)))
			used = max(len(prefix), 2)
		default:
			t.b.WriteString(separator)
			used += len([]rune(separator))
		}
		t.b.WriteString(item)
		used += w
	}
	t.b.WriteByte('\n')
}

func (t *page) histogram(bs []progress.Bucket, total int64) {
	most, digits := int64(1), 1
	for _, b := range bs {
		most = max(most, b.Count)
		digits = max(digits, len(progress.Count(b.Count)))
	}
	const name = 10
	size := min(t.width-2-labels-name-1-1-digits-5, widestBar)
	for _, b := range bs {
		cells := 0
		if size > 0 {
			cells = int((b.Count*int64(size) + most - 1) / most)
		}
		bar := strings.Repeat(t.bar, cells) + strings.Repeat(" ", max(size-cells, 0))
		share := ""
		if b.Count > 0 {
			share = progress.Percent(float64(b.Count) / float64(total))
		}
		line := fmt.Sprintf("%s%s %s %*s %4s", strings.Repeat(" ", 2+labels), runewidth.FillRight(t.atMost+round(b.AtMost), name), bar, digits, progress.Count(b.Count), share)
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// round writes the round numbers of bounds.
func round(d time.Duration) string {
	f := func(v float64, unit string) string { return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit }
	switch {
	case d < time.Millisecond:
		return f(float64(d.Microseconds()), "µs")
	case d < time.Second:
		return f(float64(d.Microseconds())/1e3, "ms")
	}
	return f(d.Seconds(), "s")
}

func (t *page) errors(m map[string]*Kind) {
	names := kinds(m)
	wide, digits := 0, 0
	for _, k := range names {
		wide = max(wide, runewidth.StringWidth(progress.Printable(k)))
		digits = max(digits, len(progress.Count(m[k].Count)))
	}
	for i, k := range names {
		label := ""
		if i == 0 {
			label = "errors"
		}
		if i == topErrors {
			fmt.Fprintf(&t.b, "  %-*s%s %s more\n", labels, "", t.cut, plural(int64(len(names)-i), "kind"))
			break
		}
		where := fmt.Sprintf("e.g. %s (%s:%d)", progress.Printable(m[k].Example), progress.Printable(m[k].File), m[k].Line)
		line := fmt.Sprintf("  %-*s%s  %*s  ", labels, label, runewidth.FillRight(progress.Printable(k), wide), digits, progress.Count(m[k].Count))
		t.b.WriteString(line + runewidth.Truncate(where, max(t.width-runewidth.StringWidth(line), len(t.cut)), t.cut) + "\n")
	}
}

// groups draws a table; a narrow one leaves out what matters least.
func (t *page) groups(head string, gs []*Totals) {
	type column struct {
		name string
		of   func(*Totals) string
	}
	columns := []column{
		{"records", func(g *Totals) string { return progress.Count(g.Records) }},
		{"ok", func(g *Totals) string { return progress.Count(g.OK) }},
		{"failed", func(g *Totals) string { return progress.Count(g.Records - g.OK) }},
		{"429", func(g *Totals) string { return progress.Count(g.Throttled) }},
		{"mean", func(g *Totals) string { return rateText(g.starts.mean()) }},
		{"max/s", func(g *Totals) string { return progress.Count(g.starts.most(time.Second)[0]) }},
	}
	for _, q := range []struct {
		name string
		of   func(progress.Quantiles) time.Duration
	}{
		{"p50", func(q progress.Quantiles) time.Duration { return q.P50 }},
		{"p99", func(q progress.Quantiles) time.Duration { return q.P99 }},
	} {
		columns = append(columns, column{q.name, func(g *Totals) string {
			if all := g.latency.quantiles(); all.Count > 0 {
				return span(q.of(all))
			}
			return "–"
		}})
	}
	rest := 0
	if len(gs) > topGroups {
		rest = len(gs) - topGroups
		gs = gs[:topGroups]
	}
	rows := [][]string{{head}}
	for _, g := range gs {
		rows = append(rows, []string{runewidth.Truncate(cmp.Or(progress.Printable(g.Name), "(none)"), 28, t.cut)})
	}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
		for i, g := range gs {
			rows[i+1] = append(rows[i+1], c.of(g))
		}
	}
	for _, drop := range []string{"ok", "p50", "mean", "429", "p99"} {
		if tableWidth(rows) <= t.width {
			break
		}
		i := slices.Index(rows[0], drop)
		for r := range rows {
			rows[r] = slices.Delete(rows[r], i, i+1)
		}
	}
	widths := columnWidths(rows)
	for _, r := range rows {
		t.b.WriteString("  " + runewidth.FillRight(r[0], widths[0]))
		for i, c := range r[1:] {
			t.b.WriteString("  " + runewidth.FillLeft(c, widths[i+1]))
		}
		t.b.WriteByte('\n')
	}
	if rest > 0 {
		fmt.Fprintf(&t.b, "  %s %s more: see --json\n", t.cut, plural(int64(rest), "group"))
	}
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	return widths
}

func tableWidth(rows [][]string) int {
	sum := 0
	for _, w := range columnWidths(rows) {
		sum += 2 + w
	}
	return sum
}
