package progress

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// screen is a terminal that understands what this package writes and refuses
// everything else. It scrolls for ever and remembers all of its rows.
type screen struct {
	width    int
	rows     [][]rune
	row, col int
	hidden   bool
	styles   int // SGR sequences
	faults   []string
}

func newScreen(width int) *screen { return &screen{width: width, rows: [][]rune{nil}} }

func (s *screen) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *screen) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		rest := b[size:]
		switch {
		case r == '\n':
			s.row++
			s.col = 0
			for len(s.rows) <= s.row {
				s.rows = append(s.rows, nil)
			}
		case r == '\r':
			s.col = 0
		case r == 0x1b:
			rest = s.escape(rest)
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			s.fault("byte %q", b[:size])
		default:
			s.put(r)
		}
		b = rest
	}
	return n, nil
}

func (s *screen) put(r rune) {
	w := runewidth.RuneWidth(r)
	if s.col+w > s.width {
		s.fault("row %d is wider than %d: %q", s.row, s.width, string(s.rows[s.row]))
		return
	}
	line := s.rows[s.row]
	for len(line) < s.col {
		line = append(line, ' ')
	}
	s.rows[s.row] = append(line[:min(s.col, len(line))], append([]rune{r}, line[min(s.col+1, len(line)):]...)...)
	s.col += w
}

func (s *screen) escape(b []byte) []byte {
	end := strings.IndexFunc(string(b[1:]), func(r rune) bool { return r >= '@' && r <= '~' }) + 1
	if b[0] != '[' || end < 1 {
		s.fault("escape %q", b[:min(len(b), 8)])
		return nil
	}
	arg, final := string(b[1:end]), b[end]
	switch {
	case final == 'A':
		n, _ := strconv.Atoi(arg)
		s.row = max(s.row-n, 0)
	case final == 'K' && arg == "":
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case final == 'J' && arg == "":
		s.rows = append(s.rows[:s.row], s.rows[s.row][:min(s.col, len(s.rows[s.row]))])
	case final == 'm':
		s.styles++
	case final == 'l' && arg == "?25":
		s.hidden = true
	case final == 'h' && arg == "?25":
		s.hidden = false
	default:
		s.fault("escape %q", string(b[:end+1]))
	}
	return b[end+1:]
}

// text returns the rows without the empty last one.
func (s *screen) text() string {
	var b strings.Builder
	for i, r := range s.rows {
		if i == len(s.rows)-1 && len(r) == 0 {
			break
		}
		b.WriteString(strings.TrimRight(string(r), " ") + "\n")
	}
	return b.String()
}

// atRest reports what is wrong with where the cursor has been left.
func (s *screen) atRest() error {
	if s.hidden || s.col != 0 || s.row != len(s.rows)-1 || len(s.rows[s.row]) != 0 {
		return fmt.Errorf("cursor hidden=%v at row %d of %d, column %d", s.hidden, s.row, len(s.rows), s.col)
	}
	return nil
}
