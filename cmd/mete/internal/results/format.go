package results

import (
	"fmt"
	"strconv"
	"time"
)

// count writes n with a comma after every thousand.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes a number and what it counts: "1 row", "2 rows".
func plural(n int64, one string, many ...string) string {
	if n == 1 {
		return "1 " + one
	}
	if many == nil {
		many = []string{one + "s"}
	}
	return count(n) + " " + many[0]
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
		return count(int64(perSecond+0.5)) + "/s"
	case perSecond < 0.1:
		return strconv.FormatFloat(perSecond*60, 'f', 2, 64) + "/m"
	}
	return strconv.FormatFloat(perSecond, 'f', 2, 64) + "/s"
}

// percent rounds to whole per cent, but calls only the whole 100 and only
// nothing 0.
func percent(part, whole float64) string {
	switch p := part * 100 / whole; {
	case p > 0 && p < 1:
		return "<1%"
	case p > 99 && p < 100:
		return "99%"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + "%"
	}
}
