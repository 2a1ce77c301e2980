package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Error is one problem of a configuration file.
type Error struct {
	File string `json:"file"`
	// Line and Col count from 1, Col in characters. Both are 0 when the file
	// could not be read at all.
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
	// Source shows the line, the one before it and a caret under the place.
	// Secrets in it are masked.
	Source string `json:"source,omitempty"`

	cause error
}

// Error returns the problem in one line, as in "mete.yaml:14:5: unknown key".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
}

// Unwrap returns the cause of a file that could not be read.
func (e *Error) Unwrap() error { return e.cause }

// Errors are all problems of a file, in the order of its lines.
type Errors []*Error

// Error returns every problem with its source lines, and the count of them.
func (e Errors) Error() string {
	var b strings.Builder
	for _, err := range e {
		b.WriteString(err.Error())
		b.WriteByte('\n')
		b.WriteString(err.Source)
	}
	if len(e) == 1 {
		b.WriteString("1 error; nothing was started")
	} else {
		fmt.Fprintf(&b, "%d errors; nothing was started", len(e))
	}
	return b.String()
}

// Unwrap returns the problems, so that errors.Is finds fs.ErrNotExist.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return all
}

// finish sorts problems and gives each its source lines. It comes last because
// only then are all secrets known that must not be shown.
func (d *decoder) finish(problems []*Error) []*Error {
	slices.SortStableFunc(problems, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	for _, e := range problems {
		e.Message = clean(d.hidden.mask(e.Message))
		e.Source = d.source(e.Line, e.Col)
	}
	return problems
}

// source returns the line before, the line and a caret.
func (d *decoder) source(line, col int) string {
	if line < 1 || line > len(d.lines) {
		return ""
	}
	if !d.parsed && !strings.Contains(d.line(line), ":") {
		return "" // without a key beside it nobody knows what this is
	}
	var b strings.Builder
	if before := d.show(d.line(line - 1)); d.parsed && strings.TrimSpace(before) != "" {
		before, _ = crop(before, 0)
		fmt.Fprintf(&b, "  %4d | %s\n", line-1, before)
	}
	// The caret stands under the place as displayed: masks change lengths,
	// tabs stay tabs, and some characters are two cells wide.
	runes := []rune(d.line(line))
	prefix := d.show(string(runes[:min(col-1, len(runes))]))
	shown, prefix := crop(d.show(string(runes)), utf8.RuneCountInString(prefix))
	fmt.Fprintf(&b, "> %4d | %s\n         ", line, shown)
	for _, r := range prefix {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteString(strings.Repeat(" ", runewidth.RuneWidth(r)))
		}
	}
	b.WriteString("^\n")
	return b.String()
}

// crop cuts a long line down to the surroundings of character at, and returns
// it with its part before that character.
func crop(line string, at int) (shown, prefix string) {
	const width = 160
	runes := []rune(line)
	at = min(at, len(runes))
	if len(runes) <= width {
		return line, string(runes[:at])
	}
	from := max(at-width/2, 0)
	to := min(from+width, len(runes))
	shown, prefix = string(runes[from:to]), string(runes[from:at])
	if from > 0 {
		shown, prefix = "…"+shown, "…"+prefix
	}
	if to < len(runes) {
		shown += "…"
	}
	return shown, prefix
}

// show returns a part of the file as it may be seen.
func (d *decoder) show(s string) string {
	s = d.hidden.mask(s)
	if !d.parsed {
		s = maskByName(s)
	}
	return clean(s)
}

// clean replaces what could move the cursor or change colours of a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			return '\uFFFD'
		}
		return r
	}, s)
}
