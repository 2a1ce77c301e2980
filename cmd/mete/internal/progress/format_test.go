package progress

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 412310: "412,310", 1e6: "1,000,000", -1234: "-1,234", -123: "-123",
		math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		d           time.Duration
		clock, span string
	}{
		{0, "0s", "0.0 ms"},
		{1500 * time.Microsecond, "0s", "1.5 ms"},
		{180 * time.Millisecond, "0s", "180 ms"},
		{2100 * time.Millisecond, "2s", "2.1 s"},
		{41 * time.Second, "41s", "41 s"},
		{59*time.Second + 600*time.Millisecond, "1m00s", "60 s"},
		{59*time.Minute + 12*time.Second, "59m12s", "59m12s"},
		{3*time.Hour + 16*time.Minute, "3h16m", "3h16m"},
		{50 * time.Hour, "2d02h", "2d02h"},
		{99*24*time.Hour + 23*time.Hour, "99d23h", "99d23h"},
		{math.MaxInt64, ">99d", ">99d"},
	} {
		if got := clock(c.d); got != c.clock || len(got) > 6 {
			t.Errorf("clock(%v) = %q, want %q", c.d, got, c.clock)
		}
		if got := span(c.d); got != c.span {
			t.Errorf("span(%v) = %q, want %q", c.d, got, c.span)
		}
	}
}

func TestPaceIsInTheUnitOfTheLimit(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		limit     string
		limitPerS float64
		digits    int
		want      string
	}{
		{49.98, "50/s", 50, 2, "49.98/s"},
		{49.98, "50/s", 50, -1, "50.0/s"},
		{8.33, "500/m", 500.0 / 60, -1, "500/m"},
		{0.333, "5/15s", 5.0 / 15, -1, "5.0/15s"},
		{0.25, "", 0, -1, "0.25/s"},
		{0, "50/s", 50, -1, "0/s"},
		{12345, "", 0, -1, "12,345/s"},
		{1, "calendar", 2, -1, "1.0/s"},
		{math.Inf(1), "", 0, 2, "1000000000000000.00/s"},
		{math.NaN(), "50/s", 50, 2, "0.00/s"},
	} {
		if got := pace(c.perSecond, c.limit, c.limitPerS, c.digits); got != c.want {
			t.Errorf("pace(%v, %q) = %q, want %q", c.perSecond, c.limit, got, c.want)
		}
	}
}

func TestPercentSaysNeitherAllNorNothingOfAPart(t *testing.T) {
	for share, want := range map[float64]string{0: "0%", 0.0001: "<1%", 0.016: "2%", 0.98: "98%", 0.9999: "99%", 1: "100%"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
}

func TestPrintableTextStaysOnItsLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\r\nc":             "a b  c",
		"\x1b[2J\x07x\u009by":   "[2Jxy",
		"user\u202egnp.exe":     "usergnp.exe",
		"bad \xff byte":         "bad \uFFFD byte",
		"  trimmed \u2028line ": "trimmed  line",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWrapKeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Printable(rapid.StringN(0, 200, -1).Draw(t, "text"))
		width := rapid.IntRange(4, 100).Draw(t, "width")
		got := wrap(text, "  ", width, runewidth.StringWidth)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
			t.Fatalf("%q became %q", text, got)
		}
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if runewidth.StringWidth(line) > width && len(strings.Fields(line)) > 1 {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
	})
}
