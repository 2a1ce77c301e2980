package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// The functions below find their way through JSON that has been checked
// already. Whatever they are given, they stay within its bounds.

var errJSON = errors.New("not JSON")

// members calls f with each member of an object, values without white space
// around them, until f returns an error.
func members(b []byte, f func(name, value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errJSON
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return errJSON
		}
		end := skipValue(b, i)
		if end < 0 {
			return errJSON
		}
		name := b[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			s, err := unquote(b[i:end])
			if err != nil {
				return err
			}
			name = s
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return errJSON
		}
		i = skipSpace(b, i+1)
		if end = skipValue(b, i); end < 0 {
			return errJSON
		}
		if err := f(name, b[i:end]); err != nil {
			return err
		}
		i = skipSpace(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return nil
		default:
			return errJSON
		}
	}
}

// elements calls f with each element of an array until f returns an error.
func elements(b []byte, f func(n int, value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return errJSON
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return nil
	}
	for n := 0; ; n++ {
		end := skipValue(b, i)
		if end < 0 {
			return errJSON
		}
		if err := f(n, b[i:end]); err != nil {
			return err
		}
		i = skipSpace(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == ']':
			return nil
		default:
			return errJSON
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index behind the value at b[i], or -1.
func skipValue(b []byte, i int) int {
	from, depth := i, 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if depth <= 0 {
			break
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	i = from
	for i < len(b) && !delimiter[b[i]] {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// delimiter ends a number or a word.
var delimiter = [256]bool{',': true, ':': true, '}': true, ']': true, '{': true, '[': true, '"': true, ' ': true, '\t': true, '\n': true, '\r': true}

// skipString returns the index behind the string at b[i], or -1.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		slashes := 0
		for end-1-slashes >= i && b[end-1-slashes] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// unquote returns the text of a string. It refers to value where it can.
func unquote(value []byte) ([]byte, error) {
	if len(value) < 2 || value[0] != '"' {
		return nil, errors.New("not a string")
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return []byte(s), err
}

func isNull(value []byte) bool { return string(value) == "null" }

// text is unquote with null as the empty text.
func text(value []byte) (string, error) {
	if isNull(value) {
		return "", nil
	}
	s, err := unquote(value)
	return string(s), err
}

// number reads a number, null as 0.
func number(value []byte) (float64, error) {
	if isNull(value) {
		return 0, nil
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, errors.New("not a number")
	}
	return f, nil
}
