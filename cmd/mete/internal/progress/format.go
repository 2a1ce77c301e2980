package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Count writes n with a comma after every thousand.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := len(s) - len(strings.TrimPrefix(s, "-"))
	for i := len(s) - 3; i > sign; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// clock writes a duration of seconds to days in at most six characters.
func clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	m, h, days := s/60, s/3600, s/86400
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case m < 60:
		return fmt.Sprintf("%dm%02ds", m, s%60)
	case h < 48:
		return fmt.Sprintf("%dh%02dm", h, m%60)
	case days < 100:
		return fmt.Sprintf("%dd%02dh", days, h%24)
	}
	return ">99d"
}

// span writes the duration of a call or a wait.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + " s"
	}
	return clock(d)
}

// pace writes a rate in the unit of the limit it is compared with, so that
// "8.33/s of 500/m" reads "500/m of 500/m".
func pace(perSecond float64, limit string, limitPerSecond float64, digits int) string {
	unit := "s"
	if n, per, ok := strings.Cut(limit, "/"); ok && limitPerSecond > 0 {
		if v, err := strconv.ParseFloat(n, 64); err == nil && v > 0 {
			perSecond *= v / limitPerSecond
			unit = per
		}
	}
	if math.IsNaN(perSecond) {
		perSecond = 0
	}
	perSecond = min(perSecond, 1e15) // nothing is faster, and int64 has an end
	if digits < 0 {
		switch {
		case perSecond == 0:
			digits = 0
		case perSecond >= 1000:
			return Count(int64(math.Round(perSecond))) + "/" + unit
		case perSecond >= 100:
			digits = 0
		case perSecond >= 1:
			digits = 1
		default:
			digits = 2
		}
	}
	return strconv.FormatFloat(perSecond, 'f', digits, 64) + "/" + unit
}

// Percent rounds a share to whole per cent, but calls only the whole 100 and
// only nothing 0.
func Percent(share float64) string {
	switch p := share * 100; {
	case p > 0 && p < 1:
		return "<1%"
	case p > 99 && p < 100:
		return "99%"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + "%"
	}
}

// Printable returns s as it can be shown on one line of any terminal or log:
// a provider's text must not move the cursor or forge a line.
func Printable(s string) string {
	clean := func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}
	return strings.TrimSpace(strings.Map(clean, strings.ToValidUTF8(s, "\uFFFD")))
}

// Wrap breaks text between words into lines of at most width columns, those
// after the first behind indent. A width below 1 breaks nothing.
func Wrap(text, indent string, width int) string {
	return wrap(text, indent, width, runewidth.StringWidth)
}

// wrap breaks text at spaces so that no line is wider than width; lines after
// the first are indented. A word that is too long stays whole, so that paths
// and commands can be copied.
func wrap(text, indent string, width int, measure func(string) int) string {
	if width <= 0 || measure(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		w := measure(word)
		switch {
		case i == 0:
		case used+1+w > width:
			b.WriteString("\n" + indent)
			used = measure(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += w
	}
	return b.String()
}
