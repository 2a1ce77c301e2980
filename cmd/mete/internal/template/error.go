package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a mistake in a template.
type Error struct {
	Place  string // where the template was given: "--url", "-d", "--json", "--id" or "-H NAME"
	Line   int    // from 1
	Column int    // from 1, in characters
	// Message says what is wrong and the remedy.
	Message string
	// Text is the action that is wrong, fit for a terminal; empty outside of
	// one. What stands around it could be a credential and is left out.
	Text string

	caret int // in characters of Text, from 0
}

// Error returns "--url:1:23: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Place, e.Line, e.Column, e.Message)
}

// Detail returns the action with a caret under the place, two lines without a
// newline at the end; empty if there is nothing to show.
func (e *Error) Detail() string {
	if e.Text == "" {
		return ""
	}
	margin := fmt.Sprintf("%6d | ", e.Line)
	return margin + e.Text + "\n" + strings.Repeat(" ", len(margin)+e.caret) + "^"
}

// RowError says why a row renders no request.
type RowError struct {
	Place   string // as in Error
	Message string
}

// Error returns "--json: message".
func (e *RowError) Error() string { return e.Place + ": " + e.Message }

// newError places a mistake at a byte of the template's text.
func newError(place, text string, at int, format string, args ...any) *Error {
	at = min(max(at, 0), len(text))
	before := text[:at]
	e := &Error{Place: place, Message: fmt.Sprintf(format, args...)}
	e.Line = 1 + strings.Count(before, "\n")
	e.Column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])

	open := strings.LastIndex(text[:min(at+2, len(text))], "{{")
	if open < 0 || strings.Contains(text[open:at], "}}") {
		return e
	}
	end := len(text)
	if i := strings.Index(text[at:], "}}"); i >= 0 {
		end = at + i + 2
	}
	lead := ""
	if open > 0 {
		lead = "…"
	}
	shown := []rune(lead + text[open:end])
	e.caret = utf8.RuneCountInString(lead + text[open:at])
	const widest = 76
	if from := e.caret - widest/2; from > 0 && len(shown) > widest {
		shown = append([]rune("…"), shown[from:]...)
		e.caret -= from - 1
	}
	if len(shown) > widest {
		shown = append(shown[:widest:widest], '…')
	}
	for i, r := range shown {
		if !unicode.IsPrint(r) {
			shown[i] = ' '
		}
	}
	e.Text = string(shown)
	return e
}

// quote shortens and quotes a value for a message.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		i := longest
		for i > 0 && !utf8.RuneStart(s[i]) {
			i--
		}
		s = s[:i] + "…"
	}
	return fmt.Sprintf("%q", s)
}

// list joins names for a message.
func list(names []string) string {
	const most = 30
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		if !word(name) {
			name = quote(name)
		}
		shown = append(shown, name)
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), len(names)-most)
	}
	return strings.Join(shown, ", ")
}

// word reports whether a column can be written {{.name}}.
func word(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != ""
}
