package results

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Column is one column of a CSV file: a path into the record.
type Column struct {
	Name string // in the first line of the file
	path []step
}

// step is one member, or one element of an array.
type step struct {
	name  string
	index int // -1 if name is no number
}

// ParseColumns reads a list such as
//
//	id, body.results.0.lat, meta.address, headers."x-request-id".0
//
// A path is names with dots between them; a number is an element of an array,
// counted from 0, or a member of that name. A name that holds a dot, a comma,
// a quote or white space at its ends is written as a JSON string. White space
// around a path is free.
func ParseColumns(list string) ([]Column, error) {
	var cols []Column
	p := pathParser{s: list}
	for {
		c, err := p.column()
		if err != nil {
			return nil, fmt.Errorf("column %d of %q: %w", utf8.RuneCountInString(list[:p.i])+1, list, err)
		}
		cols = append(cols, c)
		if p.i == len(list) {
			return cols, nil
		}
		p.i++ // the comma
	}
}

type pathParser struct {
	s string
	i int
}

func (p *pathParser) column() (Column, error) {
	p.space()
	start := p.i
	var c Column
	for {
		name, err := p.name()
		if err != nil {
			return c, err
		}
		c.path = append(c.path, newStep(name))
		end := p.i
		if p.i < len(p.s) && p.s[p.i] == '.' {
			p.i++
			continue
		}
		p.space()
		if p.i < len(p.s) && p.s[p.i] != ',' {
			return c, errors.New("want a dot, a comma or the end here")
		}
		c.Name = p.s[start:end]
		return c, nil
	}
}

func (p *pathParser) space() {
	for p.i < len(p.s) && isBlank(p.s[p.i]) {
		p.i++
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (p *pathParser) name() (string, error) {
	rest := p.s[p.i:]
	if strings.HasPrefix(rest, `"`) {
		end := skipString([]byte(rest), 0)
		if end < 0 {
			return "", errors.New("this quote is not closed")
		}
		name, err := unquote([]byte(rest[:end]))
		if err != nil {
			return "", errors.New("this is no JSON string")
		}
		p.i += end
		return string(name), nil
	}
	end := strings.IndexAny(rest, `.,"`)
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	if end == len(rest) || rest[end] == ',' {
		name = strings.TrimRight(name, " \t\r\n")
	}
	switch {
	case name == "":
		return "", errors.New(`want a name here, as in body.results.0.lat`)
	case isBlank(name[0]) || isBlank(name[len(name)-1]):
		return "", errors.New(`white space at the end of a name: write it as "…"`)
	}
	p.i += len(name)
	return name, nil
}

func newStep(name string) step {
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 || strconv.Itoa(n) != name {
		n = -1
	}
	return step{name, n}
}

// pathText writes the path so that ParseColumns reads it again.
func pathText(names ...string) string {
	for i, name := range names {
		if name == "" || strings.ContainsAny(name, ".,\"\\") || isBlank(name[0]) || isBlank(name[len(name)-1]) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			names[i] = quoteJSON(name)
		}
	}
	return strings.Join(names, ".")
}

var errFound = errors.New("found")

// find returns the value at the end of the path, nil if there is none. Of
// members with the same name the last one counts, as for most readers.
func find(value []byte, path []step) []byte {
	for _, s := range path {
		var next []byte
		switch {
		case len(value) > 0 && value[0] == '{':
			_ = members(value, func(name, v []byte) error {
				if string(name) == s.name {
					next = v
				}
				return nil
			})
		case len(value) > 0 && value[0] == '[' && s.index >= 0:
			_ = elements(value, func(n int, v []byte) error {
				if n == s.index {
					next = v
					return errFound
				}
				return nil
			})
		}
		if next == nil {
			return nil
		}
		value = next
	}
	return value
}
