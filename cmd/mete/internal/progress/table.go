package progress

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"
)

// table lists the providers; a narrow one leaves out the columns that matter
// least.
func (t *text) table(ps []Provider) {
	head := []string{"provider", "starts", "ok", "failed", "429", "rate", "p50", "p99"}
	drop := []string{"p50", "ok", "starts", "p99"}
	rows := [][]string{head}
	for _, p := range ps {
		rate := "–"
		if r := p.Achieved(); r > 0 {
			rate = pace(r, p.Limit, p.LimitPerSecond, 2)
			if p.Limit != "" {
				rate += " of " + Printable(p.Limit)
			}
		}
		p50, p99 := "–", "–"
		if p.Latency.Count > 0 {
			p50, p99 = span(p.Latency.P50), span(p.Latency.P99)
		}
		name := runewidth.Truncate(Printable(p.Name), 24, "…")
		rows = append(rows, []string{name, Count(p.Starts), Count(p.OK), Count(p.Failed), Count(p.Throttled), rate, p50, p99})
	}
	out := layout(rows)
	for t.width > 0 && widest(out) > t.width && len(drop) > 0 {
		i := slices.Index(rows[0], drop[0])
		for r := range rows {
			rows[r] = slices.Delete(rows[r], i, i+1)
		}
		drop = drop[1:]
		out = layout(rows)
	}
	t.b.WriteString(out)
}

func layout(rows [][]string) string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := 0
	for _, r := range rows {
		names = max(names, runewidth.StringWidth(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t\n", strings.Join(r[1:], "\t"))
	}
	tw.Flush()
	var out strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		out.WriteString("  " + runewidth.FillRight(rows[i][0], names) + l + "\n")
	}
	return out.String()
}

func widest(s string) int {
	n := 0
	for l := range strings.Lines(s) {
		n = max(n, runewidth.StringWidth(strings.TrimSuffix(l, "\n")))
	}
	return n
}
