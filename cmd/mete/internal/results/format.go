package results

import (
	"fmt"
	"strconv"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

// plural writes a number and what it counts: "1 row", "2 rows".
func plural(n int64, one string, many ...string) string {
	if n == 1 {
		return "1 " + one
	}
	if many == nil {
		many = []string{one + "s"}
	}
	return progress.Count(n) + " " + many[0]
}

// span writes the duration of a call or a wait.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// bytesText writes a size in the largest binary unit that leaves a whole part.
func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return plural(n, "byte")
	}
	f, unit := float64(n), -1
	for f >= 1023.95 && unit < len(units)-1 {
		f /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[unit])
}

// rateText writes calls per second.
func rateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "–"
	case perSecond >= 1000:
		return progress.Count(int64(perSecond+0.5)) + "/s"
	case perSecond < 0.1:
		return strconv.FormatFloat(perSecond*60, 'f', 2, 64) + "/m"
	}
	return strconv.FormatFloat(perSecond, 'f', 2, 64) + "/s"
}
