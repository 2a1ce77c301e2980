// Headline measures, in real time, the figures that a published Python
// implementation of the same ideas has, and prints them as one table. The last
// column is the ideal divided by what was measured; it fails if one of the
// first seven is below 0.97. Run it in the root of the repository:
//
//	go run ./bench/headline
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// least is the ratio ideal/measured that each timed case must reach.
const least = 0.97

func main() {
	runs := flag.Int("runs", 5, "runs of a `series`, whose median counts")
	items := flag.Int("items", 10_000_000, "`items` of the long stream")
	flag.Parse()

	usual, worst := sleeps()
	fmt.Printf("on this machine a sleep of 50 ms takes %.1f ms, at worst %.1f ms\n\n", usual, worst)
	t := table{}
	t.line("case", "published", "ideal", "mete", "ideal/mete")
	failed := false
	for _, c := range timed {
		took, peak, err := measure(*runs, c.ideal, c.run)
		if err != nil {
			exit(fmt.Errorf("%s: %w", c.name, err))
		}
		got, ratio := fmt.Sprintf("%.3f s", took.Seconds()), c.ideal.Seconds()/took.Seconds()
		verdict := fmt.Sprintf("%.3f", ratio)
		if c.peak > 0 {
			got += fmt.Sprintf(", peak %d", peak)
		}
		if ratio < least || c.peak > 0 && peak > c.peak {
			verdict += " LOW"
			failed = true
		}
		t.line(c.name, c.published, fmt.Sprintf("%.2f s", c.ideal.Seconds()), got, verdict)
	}

	ours, theirs := acquireRelease()
	t.line("acquire + release, nobody waiting", "under 1 us", "a few ns",
		fmt.Sprintf("%.0f ns", ours), fmt.Sprintf("x/sync %.0f ns", theirs))
	short, long, err := memory(*items)
	if err != nil {
		exit(err)
	}
	t.line("50,000 calls, 20 workers", "memory flat", "flat", fmt.Sprintf("%.1f MiB", short), "")
	t.line(thousands(*items)+" calls, 20 workers", "", "flat", fmt.Sprintf("%.1f MiB", long), fmt.Sprintf("%+.1f MiB", long-short))
	if failed {
		exit(fmt.Errorf("a ratio is below %.2f or a peak too high; is the machine busy? a plain sleep of 50 ms took %.1f ms, at worst %.1f ms", least, usual, worst))
	}
}

// sleeps is how long a sleep of 50 ms takes in milliseconds, as a median and at
// worst: what a late timer adds here, no limiter can take away.
func sleeps() (usual, worst float64) {
	var took []float64
	for range 20 {
		begun := time.Now()
		time.Sleep(50 * ms)
		took = append(took, time.Since(begun).Seconds()*1e3)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1]
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "headline:", err)
	os.Exit(1)
}

// table prints lines as they come, since a case takes seconds.
type table struct{}

var widths = [...]int{45, 15, 8, 16, 13}

func (table) line(cells ...string) {
	var b strings.Builder
	for i, c := range cells {
		gap := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c), 0))
		if i == 0 {
			b.WriteString(c + gap)
		} else {
			b.WriteString(" " + gap + c)
		}
	}
	fmt.Println(strings.TrimRight(b.String(), " "))
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
