package input

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RowError says what is wrong with one row. Reading goes on after it.
type RowError struct {
	File    string
	Line    int // from 1
	Column  int // from 1, in bytes of the line without a byte order mark; 0 if the whole line is meant
	Message string
	// Text is the line around Column, at most 80 characters, fit for a terminal
	// and with credentials replaced by stars.
	Text string
	// ID is the row's id as far as it could be read, else one made from the
	// line's bytes, so that a bad row too has a record of its own.
	ID        string
	NumericID bool // the input wrote it as an integer
	// Key identifies the bad row across runs; it never equals a good row's.
	Key [16]byte

	caret int // in characters of Text, from 0
	cause error
}

// Unwrap returns the error of Options.Check, if it refused the row.
func (e *RowError) Unwrap() error { return e.cause }

// Error returns "file:line:column: message".
func (e *RowError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Detail returns the source line with a caret under the place, two lines
// without a newline at the end; empty if there is nothing to show.
func (e *RowError) Detail() string {
	if e.Text == "" {
		return ""
	}
	margin := fmt.Sprintf("%6d | ", e.Line)
	return margin + e.Text + "\n" + strings.Repeat(" ", len(margin)+e.caret) + "^"
}

// FileError says what is wrong with the header of a table. No row of the file
// can be read.
type FileError struct{ at RowError }

// Error returns "file:line:column: message".
func (e *FileError) Error() string { return e.at.Error() }

// Detail returns the source line with a caret under the place, as that of a
// RowError.
func (e *FileError) Detail() string { return e.at.Detail() }

// locate sets line, column and text to a byte of a row's text.
func (e *RowError) locate(text []byte, at int) {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	e.Line += bytes.Count(text[:start], []byte{'\n'})
	line := text[start:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	at -= start
	e.Column = at + 1
	e.show(line, at)
}

// fault is a mistake at a byte of the line, from 0.
type fault struct {
	at  int
	msg string
}

func faultf(at int, format string, args ...any) *fault {
	return &fault{at, fmt.Sprintf(format, args...)}
}

const (
	detailWidth  = 80
	detailWindow = 8 << 10 // bytes on each side searched for credentials
)

// show sets Text and caret from the line.
func (e *RowError) show(line []byte, at int) {
	lo, hi := max(0, at-detailWindow), min(len(line), at+detailWindow)
	text := hide(string(line[lo:hi]))
	at = min(at-lo, len(text))

	// Only the characters shown are looked at, counted from the place.
	left, right := at, at
	for n := 0; n < detailWidth/2 && left > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:left])
		left -= size
	}
	for n := 0; n < detailWidth/2-2 && right < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[right:])
		right += size
	}
	var b strings.Builder
	if left > 0 || lo > 0 {
		b.WriteRune('…')
		e.caret++
	}
	for i, r := range text[left:right] {
		if left+i < at {
			e.caret++
		}
		switch {
		case r == '\t' || r == '\r':
			r = ' '
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	if right < len(text) || hi < len(line) {
		b.WriteRune('…')
	}
	e.Text = b.String()
	if strings.TrimSpace(e.Text) == "" {
		e.Text = ""
	}
}

// secrets match what must not be shown, in their one group. Where a password
// may hold an unescaped / or @ they take too much rather than too little.
var secrets = []*regexp.Regexp{
	// user:password@ and user@ of a URL
	regexp.MustCompile(`//([^/?#"]*:[^"]*)@`),
	regexp.MustCompile(`//([^/?#\s"]*)@`),
	// the same at the start of a line without a scheme
	regexp.MustCompile(`^\s*(?:[A-Za-z]+\s+)?([^/?#\s"]*:[^/"][^"]*)@`),
	regexp.MustCompile(`^\s*(?:[A-Za-z]+\s+)?([^/?#\s"@]*)@`),
	// query parameters
	regexp.MustCompile(`(?i)[?&](?:[a-z0-9_.-]*(?:key|token|secret|password|passwd|pwd|sig|signature|credential|auth|session))=([^&#\s"]*)`),
	// headers and fields of a row
	regexp.MustCompile(`(?i)"(?:[a-z0-9_-]*(?:authorization|cookie|key|token|secret|password|passwd|credential|session))"\s*:\s*\[?\s*"((?:[^"\\]|\\.)*)(?:"|$)`),
}

// hide replaces credentials by as many stars, so that columns stay.
func hide(text string) string {
	var b []byte
	for _, re := range secrets {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			if b == nil {
				b = []byte(text)
			}
			for i := m[2]; i < m[3]; i++ {
				b[i] = '*'
			}
		}
	}
	if b == nil {
		return text
	}
	return string(b)
}
