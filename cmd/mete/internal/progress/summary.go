package progress

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// Summary is what a run says about itself when it ends.
type Summary struct {
	// Name is what the run worked on, End how it ended: "finished",
	// "interrupted", "stopped: 3% of the rows failed".
	Name, End string

	// Rows counts rows by outcome, each row once.
	Rows Rows
	// Statuses counts rows by their final HTTP status.
	Statuses map[int]int64
	// Duration is how long the run took.
	Duration time.Duration

	// Providers are those that were called. The totals of attempts are theirs.
	Providers []Provider
	// Waits is the time that calls spent waiting, by bound.
	Waits []Wait
	// Wait is how long rows waited before their first attempt, Latency how
	// long an attempt took on the wire.
	Wait    Quantiles
	Latency Quantiles
	// WaitBuckets is the distribution of Wait; see Latency.Buckets.
	WaitBuckets []Bucket
	// WaitsApart are the waits of attempts by bound, all limits together, and
	// the back-offs of rows.
	WaitsApart []WaitHistogram

	// Diagnosis is what set the pace, in words, and what to do about it.
	Diagnosis string

	// Errors are the kinds of errors of failed rows; the five most frequent
	// are shown.
	Errors []ErrorCount

	// Output is the path of the result file, empty for standard output.
	Output string
	// Resume is the command that goes on, empty if the run is complete.
	Resume string
}

// Rows counts rows by outcome.
type Rows struct {
	Total      int64 // of the input, -1 if unknown
	Done       int64 // that have a record, including Resumed
	OK, Failed int64 // of those
	Resumed    int64 // done by an earlier run
	Cached     int64 // answered without a call
	Duplicates int64 // answered by the call of another row
}

// Provider is what one provider was asked.
type Provider struct {
	Name                                   string
	Starts, OK, Failed, Throttled, Retries int64
	// Limit is the limit that paces it as the user wrote it, LimitPerSecond
	// how many calls it lets start per second; empty and 0 without one.
	Limit          string
	LimitPerSecond float64
	// Sending is the time from the first start to the last.
	Sending time.Duration
	// Concurrency is its number of permits.
	Concurrency int
	Latency     Quantiles
	// Costs is what was paid in other units than requests.
	Costs []Cost
}

// Cost is what all attempts at a provider cost in one unit: what they were
// taken to cost, and what they did as far as that could be told. Unknown counts
// those of which it could not, Last is the cost of the last one.
type Cost struct {
	Unit                          string
	Estimate, True, Unknown, Last int64
	// Limit and LimitPerSecond are as those of a Provider.
	Limit          string
	LimitPerSecond float64
}

// achieved is how many units were paid per second; see Provider.Achieved.
func (c Cost) achieved(sending time.Duration) float64 {
	if sending <= 0 || c.True <= c.Last {
		return 0
	}
	return float64(c.True-c.Last) / sending.Seconds()
}

// costs says what was paid, a line for each provider and unit.
func (s *Summary) costs() []string {
	var lines []string
	for _, p := range s.Providers {
		for _, c := range p.Costs {
			l := Count(c.True) + " " + Printable(c.Unit)
			if len(s.Providers) > 1 {
				l = Printable(p.Name) + ": " + l
			}
			if c.Estimate != c.True {
				l += " · estimated " + Count(c.Estimate)
			}
			if c.Unknown > 0 {
				l += " · as estimated, for want of a true cost, at " + Count(c.Unknown) + " attempts"
			}
			if rate := c.achieved(p.Sending); rate > 0 && c.Limit != "" && c.LimitPerSecond > 0 {
				l += fmt.Sprintf(" · %s of %s = %.2f %%", pace(rate, c.Limit, c.LimitPerSecond, -1), Printable(c.Limit), 100*rate/c.LimitPerSecond)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// Achieved is how many calls started per second while calls were started. The
// n starts have n-1 gaps between them; counting n would promise more than the
// limit allows. 0 if fewer than two started.
func (p Provider) Achieved() float64 {
	if p.Starts < 2 || p.Sending <= 0 {
		return 0
	}
	return float64(p.Starts-1) / p.Sending.Seconds()
}

// Wait is the time that all calls together waited for one bound.
type Wait struct {
	Bound string
	Total time.Duration
}

// WaitHistogram is how waits for one bound are spread; those that did not wait
// for it do not count.
type WaitHistogram struct {
	Bound string
	Quantiles
	Buckets []Bucket // see Latency.Buckets
}

// ErrorCount is a kind of error, how many rows it failed, and the id of one.
type ErrorCount struct {
	Kind    string
	Count   int64
	Example string
}

const (
	topErrors = 5
	labels    = 11 // columns of the labels on the left
)

// WriteText writes s for people, at most width columns wide where words can be
// broken; paths and commands stay whole. A width below 1 breaks nothing.
func (s *Summary) WriteText(w io.Writer, width int) error {
	t := text{width: width}
	t.line(s.headline())
	t.blank()
	t.entry("rows", s.rows())
	t.entry("status", s.statuses())
	t.entry("attempts", s.attempts())
	if len(s.Providers) == 1 {
		t.entry("rate", achieved(s.Providers[0]))
	}
	for i, l := range s.costs() {
		t.entry(map[bool]string{true: "cost"}[i == 0], l)
	}
	t.entry("latency", quantiles(s.Latency))
	t.entry("wait", quantiles(s.Wait))
	for _, l := range histogram(s.WaitBuckets) {
		t.entry("", l)
	}
	t.entry("bound", shareList(shares(s.Waits)))
	t.entry("", Printable(s.Diagnosis))
	if len(s.Providers) > 1 {
		t.blank()
		t.table(s.Providers)
	}
	if errs := s.top(); len(errs) > 0 {
		t.blank()
		for i, l := range errorLines(errs) {
			t.entry(map[bool]string{true: "errors"}[i == 0], l)
		}
	}
	if s.Output != "" || s.Resume != "" {
		t.blank()
		t.whole("results", s.Output)
		t.whole("resume", s.Resume)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (s *Summary) headline() string {
	var b strings.Builder
	if name := Printable(s.Name); name != "" {
		b.WriteString(name + ": ")
	}
	b.WriteString(cmp.Or(Printable(s.End), "ended") + ", " + Count(s.Rows.Done))
	if s.Rows.Total > s.Rows.Done {
		b.WriteString(" of " + Count(s.Rows.Total))
	}
	b.WriteString(" rows in " + long(s.Duration))
	return b.String()
}

func (s *Summary) rows() string {
	parts := []string{"ok " + Count(s.Rows.OK), "failed " + Count(s.Rows.Failed)}
	add := func(label string, n int64) {
		if n > 0 {
			parts = append(parts, label+" "+Count(n))
		}
	}
	add("not done", s.Rows.Total-s.Rows.Done)
	add("resumed", s.Rows.Resumed)
	add("cached", s.Rows.Cached)
	add("duplicates", s.Rows.Duplicates)
	return strings.Join(parts, " · ")
}

func (s *Summary) statuses() string {
	codes := make([]int, 0, len(s.Statuses))
	for code := range s.Statuses {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Statuses[b], s.Statuses[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, code := range codes {
		parts = append(parts, strconv.Itoa(code)+" × "+Count(s.Statuses[code]))
	}
	return strings.Join(parts, " · ")
}

func (s *Summary) attempts() string {
	var starts, throttled, retries int64
	for _, p := range s.Providers {
		starts += p.Starts
		throttled += p.Throttled
		retries += p.Retries
	}
	return fmt.Sprintf("%s · retries %s · 429 %s", Count(starts), Count(retries), Count(throttled))
}

// achieved compares the rate of a provider with its limit.
func achieved(p Provider) string {
	rate := p.Achieved()
	if rate == 0 {
		return ""
	}
	got := pace(rate, p.Limit, p.LimitPerSecond, 2)
	if !(p.LimitPerSecond > 0) || p.Limit == "" { // also NaN
		return got + ", no limit"
	}
	return fmt.Sprintf("%s of %s = %.2f %%", got, Printable(p.Limit), 100*rate/p.LimitPerSecond)
}

func quantiles(q Quantiles) string {
	if q.Count == 0 {
		return ""
	}
	return fmt.Sprintf("p50 %s · p90 %s · p99 %s · max %s", span(q.P50), span(q.P90), span(q.P99), span(q.Max))
}

// histogram draws the buckets from the first to the last that is not empty.
func histogram(bs []Bucket) []string {
	first, last, most := -1, -1, int64(1)
	for i, b := range bs {
		if b.Count > 0 {
			if first < 0 {
				first = i
			}
			last, most = i, max(most, b.Count)
		}
	}
	if first < 0 || first == last {
		return nil
	}
	var lines []string
	const size = 24
	for i := first; i <= last; i++ {
		name := "more"
		if bs[i].AtMost > 0 {
			name = "≤ " + bound(bs[i].AtMost)
		}
		cells := (bs[i].Count*size + most - 1) / most
		bar := strings.Repeat("▇", int(cells)) + strings.Repeat(" ", size-int(cells))
		lines = append(lines, fmt.Sprintf("%s %s %*s", runewidth.FillRight(name, 8), bar, len(Count(most)), Count(bs[i].Count)))
	}
	return lines
}

// bound writes the round numbers of bucket bounds.
func bound(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + " s"
	case d < time.Hour:
		return strconv.FormatInt(int64(d/time.Minute), 10) + " m"
	}
	return strconv.FormatInt(int64(d/time.Hour), 10) + " h"
}

// top returns the most frequent kinds of errors.
func (s *Summary) top() []ErrorCount {
	errs := slices.Clone(s.Errors)
	slices.SortFunc(errs, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return errs[:min(len(errs), topErrors)]
}

func errorLines(errs []ErrorCount) []string {
	kinds, counts := 0, 0
	for _, e := range errs {
		kinds = max(kinds, runewidth.StringWidth(Printable(e.Kind)))
		counts = max(counts, len(Count(e.Count)))
	}
	var lines []string
	for _, e := range errs {
		l := fmt.Sprintf("%s  %*s", runewidth.FillRight(Printable(e.Kind), kinds), counts, Count(e.Count))
		if id := Printable(e.Example); id != "" {
			l += "  e.g. " + id
		}
		lines = append(lines, l)
	}
	return lines
}

// long writes a duration to the second, or finer if it is short.
func long(d time.Duration) string {
	switch {
	case d < time.Second:
		return span(d)
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// text lays out lines with labels on the left.
type text struct {
	b     strings.Builder
	width int
}

func (t *text) blank() { t.b.WriteByte('\n') }

func (t *text) line(s string) {
	t.b.WriteString(wrap(s, "  ", t.width, runewidth.StringWidth) + "\n")
}

// entry writes one labelled line, or nothing if there is nothing to say.
func (t *text) entry(label, s string) {
	if s == "" {
		return
	}
	width := 0
	if t.width > 0 {
		width = max(t.width-labels-2, 1)
	}
	indent := "\n  " + strings.Repeat(" ", labels)
	body := strings.Join(breakLines(s, width), indent)
	t.b.WriteString(fmt.Sprintf("  %-*s", labels, label) + body + "\n")
}

// whole writes an entry that must not be broken.
func (t *text) whole(label, s string) {
	if s != "" {
		t.b.WriteString(fmt.Sprintf("  %-*s%s\n", labels, label, Printable(s)))
	}
}

// breakLines breaks s into lines of at most width columns: between the items
// of a list, else at spaces.
func breakLines(s string, width int) []string {
	const dot = " · "
	items := strings.Split(s, dot)
	if len(items) == 1 || width <= 0 {
		return strings.Split(wrap(s, "", width, runewidth.StringWidth), "\n")
	}
	lines := items[:1:1]
	for _, item := range items[1:] {
		last := &lines[len(lines)-1]
		if runewidth.StringWidth(*last+dot+item) > width {
			lines = append(lines, item)
			continue
		}
		*last += dot + item
	}
	return lines
}
