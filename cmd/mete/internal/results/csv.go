package results

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

// CSV says how to write CSV (RFC 4180).
type CSV struct {
	// Columns of the file. Without any there are id, ok, status, url,
	// latency_ms, error.kind, and every member of meta that the first thousand
	// records have (fewer if these take more than 16 MiB).
	Columns []Column
	// CRLF ends lines as the RFC and spreadsheets do, instead of as Unix does.
	CRLF bool
}

const (
	sampleRecords = 1000
	sampleBytes   = 16 << 20
)

// WriteCSV writes one line for the names of the columns and one for every
// record. Strings are written as their text, numbers digit by digit as they
// were received, objects and arrays as JSON, null and what is missing as
// nothing. Nothing else is done to the data: a text that begins with = is
// written as it is.
func WriteCSV(in *Input, o CSV, w io.Writer) error {
	t := table{end: "\n", out: newOutput(w), in: in, chosen: len(o.Columns) > 0}
	if o.CRLF {
		t.end = "\r\n"
	}
	if t.chosen {
		t.start(o.Columns)
	}
	err := in.each(func(l *line) error {
		if t.columns != nil {
			return t.record(l)
		}
		return t.sample(l)
	})
	if err != nil {
		return err
	}
	if t.columns == nil {
		if err := t.startSampled(); err != nil {
			return err
		}
	}
	t.report()
	return t.out.flush()
}

type table struct {
	in      *Input
	chosen  bool // the user named the columns
	out     output
	end     string
	columns []Column
	cells   [][]byte
	filled  []bool
	buf     []byte
	records int64

	held      [][]byte // the sample
	heldBytes int
	metaKeys  []string
	metaOther bool // some meta is no object
	late      string
	lateCount int64
}

// sample holds a record back until it is clear which columns there are.
func (t *table) sample(l *line) error {
	t.held = append(t.held, bytes.Clone(l.text))
	t.heldBytes += len(l.text)
	t.meta(l.text, func(key string) {
		if !slices.Contains(t.metaKeys, key) {
			t.metaKeys = append(t.metaKeys, key)
		}
	})
	if len(t.held) < sampleRecords && t.heldBytes < sampleBytes {
		return nil
	}
	return t.startSampled()
}

// meta calls f for each member of meta.
func (t *table) meta(record []byte, f func(key string)) {
	_ = members(record, func(name, value []byte) error {
		if string(name) != "meta" || isNull(value) {
			return nil
		}
		if value[0] != '{' {
			t.metaOther = true
			return nil
		}
		return members(value, func(name, _ []byte) error { f(string(name)); return nil })
	})
}

func (t *table) startSampled() error {
	var cols []Column
	add := func(names ...string) {
		c := Column{}
		for _, n := range names {
			c.path = append(c.path, newStep(n))
		}
		c.Name = pathText(names...)
		cols = append(cols, c)
	}
	for _, name := range []string{"id", "ok", "status", "url", "latency_ms"} {
		add(name)
	}
	add("error", "kind")
	if t.metaOther {
		add("meta")
	}
	for _, key := range t.metaKeys {
		add("meta", key)
	}
	t.start(cols)
	held := t.held
	t.held = nil
	for _, text := range held {
		if err := t.row(text); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) start(cols []Column) {
	t.columns = cols
	t.cells = make([][]byte, len(cols))
	t.filled = make([]bool, len(cols))
	for i, c := range cols {
		t.cells[i] = []byte(c.Name)
	}
	t.buf = t.appendRow(t.buf[:0])
	_, _ = t.out.w.Write(t.buf) // bufio keeps the error for the next call
}

func (t *table) record(l *line) error {
	if !t.chosen {
		t.meta(l.text, func(key string) {
			if !slices.Contains(t.metaKeys, key) {
				if t.lateCount++; t.late == "" {
					t.late = key
				}
			}
		})
	}
	return t.row(l.text)
}

// row writes one record. Its members are gone through once.
func (t *table) row(record []byte) error {
	clear(t.cells)
	t.records++
	_ = members(record, func(name, value []byte) error {
		for i, c := range t.columns {
			if string(name) != c.path[0].name {
				continue
			}
			if v := find(value, c.path[1:]); v != nil {
				t.cells[i] = cell(v)
				t.filled[i] = true
			}
		}
		return nil
	})
	t.buf = t.appendRow(t.buf[:0])
	_, err := t.out.w.Write(t.buf)
	return err
}

// cell is the text of a value.
func cell(value []byte) []byte {
	switch {
	case isNull(value):
		return nil
	case value[0] == '"':
		s, _ := unquote(value)
		return s
	}
	return value
}

func (t *table) appendRow(dst []byte) []byte {
	for i, c := range t.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, c)
	}
	if len(t.cells) == 1 && len(t.cells[0]) == 0 {
		dst = append(dst, `""`...) // or the line would be empty, and skipped by readers
	}
	return append(dst, t.end...)
}

// appendField quotes where RFC 4180 or common readers need it. Unlike
// encoding/csv it never touches line breaks within a field.
func appendField(dst, field []byte) []byte {
	if len(field) == 0 {
		return dst
	}
	plain := !bytes.ContainsAny(field, ",\"\r\n") && field[0] != ' ' && field[0] != '\t' && field[0] != '#' &&
		string(field) != `\.` && !bytes.HasPrefix(field, []byte("\xef\xbb\xbf"))
	if plain {
		return append(dst, field...)
	}
	dst = append(dst, '"')
	for {
		i := bytes.IndexByte(field, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, field[:i+1]...), '"')
		field = field[i+1:]
	}
	return append(append(dst, field...), '"')
}

// report tells of columns that no record has, which are mostly misspelt, and of
// members of meta that got no column.
func (t *table) report() {
	if t.chosen && t.records > 0 {
		var empty []string
		for i, filled := range t.filled {
			if !filled {
				empty = append(empty, t.columns[i].Name)
			}
		}
		if len(empty) > 0 {
			t.in.notice("no record has %s", progress.Printable(strings.Join(empty, ", ")))
		}
	}
	if t.lateCount > 0 {
		t.in.notice("meta has members that the first records do not have and that got no column, such as %s: name the columns with --columns", progress.Printable(t.late))
	}
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
