package input

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner checks JSON (RFC 8259) strictly and leaves every byte where it is.
// The text is known to be UTF-8.
type scanner struct {
	text []byte
	at   int
}

const deepest = 1000 // nesting; a bound on the stack

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// unexpected says that something else was wanted here.
func (s *scanner) unexpected(wanted string) *fault {
	if s.at >= len(s.text) {
		return faultf(len(s.text), "the line ends where %s was expected: one whole object per line", wanted)
	}
	r, _ := utf8.DecodeRune(s.text[s.at:])
	return faultf(s.at, "expected %s, found %s", wanted, strconv.QuoteRune(r))
}

// value passes over one value and returns its bytes.
func (s *scanner) value(depth int) ([]byte, *fault) {
	c := s.peek()
	start := s.at
	var f *fault
	switch {
	case c == '"':
		_, f = s.str()
	case c == '{' || c == '[':
		if depth >= deepest {
			return nil, faultf(s.at, "nested more than %d deep", deepest)
		}
		if c == '{' {
			f = s.object(func(int, []byte) *fault {
				_, f := s.value(depth + 1)
				return f
			})
		} else {
			f = s.array(func() *fault {
				_, f := s.value(depth + 1)
				return f
			})
		}
	case c == '-' || '0' <= c && c <= '9':
		f = s.number()
	default:
		f = s.literal()
	}
	if f != nil {
		return nil, f
	}
	return s.text[start:s.at], nil
}

// object calls member for each key, quotes included, with the scanner before
// the value.
func (s *scanner) object(member func(at int, key []byte) *fault) *fault {
	if s.peek() != '{' {
		return s.unexpected("an object")
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.unexpected("a key in quotes")
		}
		at := s.at
		key, f := s.str()
		if f != nil {
			return f
		}
		if s.peek() != ':' {
			return s.unexpected("a colon")
		}
		s.at++
		s.space()
		if f := member(at, key); f != nil {
			return f
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.unexpected("a comma or }")
		}
	}
}

// array calls element with the scanner before each element.
func (s *scanner) array(element func() *fault) *fault {
	if s.peek() != '[' {
		return s.unexpected("an array")
	}
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		s.space()
		if f := element(); f != nil {
			return f
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.unexpected("a comma or ]")
		}
	}
}

// str passes over a string and returns it with its quotes.
func (s *scanner) str() ([]byte, *fault) {
	start := s.at
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return s.text[start:s.at], nil
		case c < ' ':
			return nil, faultf(i, `control character 0x%02x in a string: write \u%04x`, c, c)
		case c == '\\':
			n, f := escape(s.text, i)
			if f != nil {
				return nil, f
			}
			i += n - 1
		}
	}
	s.at = len(s.text)
	return nil, s.unexpected("a closing quote")
}

// escape checks the escape at i and returns its length. A half of a surrogate
// pair stands for no character and is refused: encoding/json replaces it.
func escape(text []byte, i int) (int, *fault) {
	if i+1 < len(text) && strings.IndexByte(`"\/bfnrt`, text[i+1]) >= 0 {
		return 2, nil
	}
	r, ok := hex4(text, i)
	switch {
	case !ok:
		return 0, &fault{i, "not an escape JSON knows"}
	case !utf16.IsSurrogate(r):
		return 6, nil
	}
	if low, ok := hex4(text, i+6); !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0, &fault{i, "half of a surrogate pair is no character"}
	}
	return 12, nil
}

// hex4 reads \uXXXX at i.
func hex4(text []byte, i int) (rune, bool) {
	if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote returns what a checked string stands for, in memory of its own.
func unquote(quoted []byte) []byte {
	in := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		i++
		switch c := in[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(in, i-1)
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(in, i+1)
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

func (s *scanner) number() *fault {
	i := s.at
	at := func() byte {
		if i < len(s.text) {
			return s.text[i]
		}
		return 0
	}
	run := func() bool {
		from := i
		for '0' <= at() && at() <= '9' {
			i++
		}
		return i > from
	}
	if at() == '-' {
		i++
	}
	ok := true
	if at() == '0' {
		i++
	} else {
		ok = run()
	}
	if ok && at() == '.' {
		i++
		ok = run()
	}
	if ok && (at() == 'e' || at() == 'E') {
		i++
		if at() == '+' || at() == '-' {
			i++
		}
		ok = run()
	}
	if !ok || alnum(at()) || at() == '.' {
		return &fault{s.at, "not a JSON number"}
	}
	s.at = i
	return nil
}

func (s *scanner) literal() *fault {
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(string(s.text[s.at:min(len(s.text), s.at+len(word))]), word) {
			s.at += len(word)
			return nil
		}
	}
	return s.unexpected("a value")
}

// kind names a value for a message.
func kind(value []byte) string {
	switch value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// quote shortens and quotes user text for a message.
func quote(s string) string { return strconv.Quote(clip(s)) }

// invalidUTF8 returns the place of the first byte that is not UTF-8.
func invalidUTF8[T string | []byte](text T) int {
	s := string(text)
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}
