package input

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// columns are those of a table, with what is made of them once.
type columns struct {
	records
	names []string
	keys  [][]byte // `{"name":` and then `,"name":`
	id    int      // the column "id", or -1
}

func newColumns(names []string) *columns {
	c := &columns{names: names, id: slices.Index(names, "id")}
	for i, name := range names {
		key := []byte{','}
		if i == 0 {
			key[0] = '{'
		}
		c.keys = append(c.keys, append(template.AppendJSON(key, name), ':'))
	}
	return c
}

// object returns a row as a JSON object of strings.
func (c *columns) object(values []string) []byte {
	n := 1
	for i, v := range values {
		n += len(c.keys[i]) + len(v) + 3
	}
	b := make([]byte, 0, n)
	for i, v := range values {
		b = template.AppendJSON(append(b, c.keys[i]...), v)
	}
	return append(b, '}')
}

// record returns the row of a table that begins with a line. The first is its
// header.
func (s *Source) record(line []byte) (*Row, error) {
	if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
		return nil, nil
	}
	var text []byte
	var f *fault
	var err error
	t := s.table
	if t == nil {
		t, text, err = s.header(line)
		if err != nil || t == nil || !s.options.NoHeader {
			return nil, err
		}
	} else if text, f, err = t.read(line); err != nil {
		if long, ok := err.(*longLine); ok {
			return nil, s.tooLong(long)
		}
		return nil, err
	}
	row := s.row(t.first)
	if f == nil {
		f = t.ragged()
	}
	if f == nil {
		values := t.row()
		id, at := "", -1
		if t.id >= 0 {
			id, at = values[t.id], t.starts[t.id]
		}
		f = s.render(row, values, id, at)
		if f == nil {
			row.Meta = t.object(values)
		}
	}
	return s.complete(row, text, f)
}

// ragged compares the row's fields with the header's.
func (c *columns) ragged() *fault {
	got, want := len(c.ends), len(c.names)
	switch {
	case got < want:
		return faultf(c.starts[got-1], "%s where the header has %d: %s is missing", count(got), want, quote(c.names[got]))
	case got > want:
		return faultf(c.starts[want], "%s where the header has %d: put a field that holds the delimiter in quotes", count(got), want)
	}
	return nil
}

func count(n int) string {
	if n == 1 {
		return "1 field"
	}
	return strconv.Itoa(n) + " fields"
}

// header reads the names of the columns, or with NoHeader makes them for the
// first row, whose text it returns. It returns no columns for the line "sep=;", with which Excel tells
// its delimiter.
func (s *Source) header(line []byte) (*columns, []byte, error) {
	r := records{lines: s.lines, delimiter: s.options.delimiter(s.format)}
	if s.separator != 0 && s.options.Delimiter == 0 {
		r.delimiter = s.separator
	}
	if mark := bytes.TrimSuffix(line, []byte{'\r'}); s.lines.line == 1 && len(mark) == 5 && bytes.HasPrefix(mark, []byte("sep=")) {
		s.separator = mark[4]
		return nil, nil, nil
	}
	text, f, err := r.read(line)
	if long, ok := err.(*longLine); ok {
		return nil, nil, s.tooLong(long)
	}
	if err != nil {
		return nil, nil, err
	}
	var names []string
	if f == nil {
		names, f = s.columnNames(&r)
	}
	if f != nil {
		e := &FileError{RowError{File: s.name, Line: r.first, Message: f.msg}}
		e.at.locate(text, max(0, f.at))
		return nil, nil, e
	}
	s.table = newColumns(names)
	s.table.records = r
	return s.table, text, s.compile()
}

func (s *Source) columnNames(r *records) ([]string, *fault) {
	fields := slices.Clone(r.row())
	if len(fields) == 1 && s.options.Delimiter == 0 && s.separator == 0 {
		for _, other := range ";\t,|" {
			if strings.ContainsRune(fields[0], other) {
				return nil, faultf(strings.IndexRune(fields[0], other), "the table looks as if it is separated by %q: use --delimiter '%s'", other, delimiterName(other))
			}
		}
	}
	seen := make(map[string]int, len(fields))
	for i, name := range fields {
		if s.options.NoHeader {
			fields[i] = "c" + strconv.Itoa(i+1)
			continue
		}
		name = strings.Clone(strings.Trim(name, " \t"))
		fields[i] = name
		lower := strings.ToLower(name)
		switch first, twice := seen[lower]; {
		case name == "":
			return nil, faultf(r.starts[i], "column %d of the header has no name: name it, or read the row as data with --no-header", i+1)
		case twice && fields[first] == name:
			return nil, faultf(r.starts[i], "the header has %s twice, in columns %d and %d: rename one", quote(name), first+1, i+1)
		case twice:
			return nil, faultf(r.starts[i], "columns %d and %d, %s and %s, differ in case only: rename one", first+1, i+1, quote(fields[first]), quote(name))
		}
		seen[lower] = i
	}
	return fields, nil
}

// delimiterName writes a delimiter for a command line.
func delimiterName(r rune) string {
	if r == '\t' {
		return `\t`
	}
	return string(r)
}

// compile prepares the template for the columns of the current file.
func (s *Source) compile() error {
	if s.template != nil || s.options.Template == nil {
		return nil
	}
	if err := s.options.needs(s.format); err != nil {
		return err
	}
	var names []string
	switch s.format {
	case "urls":
		names = []string{"url"}
	case "lines":
		s.table = newColumns([]string{"line"})
		names = s.table.names
	case "csv", "tsv":
		names = s.table.names
	}
	var err error
	if s.template, err = template.Compile(*s.options.Template, names); err == nil {
		s.names = s.template.Columns()
	}
	if wrong, ok := err.(*template.Error); ok && s.format == "lines" && s.options.Format == "auto" {
		wrong.Message += fmt.Sprintf(" (%s is read as plain lines: say --input-format csv for a table)", s.name)
	}
	return err
}
