package progress

import (
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// Detect returns the options that follow from where f leads and from the
// environment. color is the value of --color: "always", "never" or anything
// else for what NO_COLOR and TERM say (see https://no-color.org). With
// TERM=dumb f is no terminal for the purposes of this package.
func Detect(f *os.File, color string, getenv func(string) string) Options {
	dumb := getenv("TERM") == "dumb"
	o := Options{
		Out:        f,
		IsTerminal: isatty.IsTerminal(f.Fd()) && !dumb,
		ASCII:      !utf8Locale(getenv) || runewidth.EastAsianWidth,
		Width: func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
	}
	switch color {
	case "always":
		o.Color = o.IsTerminal
	case "never":
	default:
		o.Color = o.IsTerminal && getenv("NO_COLOR") == ""
	}
	return o
}

// utf8Locale reports whether the locale says UTF-8, or nothing at all, as in
// most containers.
func utf8Locale(getenv func(string) string) bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(key)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
