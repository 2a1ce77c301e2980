package input

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"unicode/utf8"
	"unsafe"
)

// records cuts the lines of a table into records and fields (RFC 4180, with any
// delimiter). encoding/csv is not used: it drops carriage returns inside quoted
// fields and holds a field of any length (golang/go#21201).
type records struct {
	lines     *lineReader
	delimiter byte
	text      []byte // of a record of several lines
	first     int    // physical line where the record begins
	fields    []byte // the contents of all fields, one after the other
	ends      []int  // of the fields in fields
	starts    []int  // of the fields in the record's text
	values    []string
}

// read takes the record that begins with a line and goes on as long as a quote
// is open. It returns the text of the record, valid until the next call. The
// error is a *longLine or what the reader said.
func (t *records) read(rec []byte) ([]byte, *fault, error) {
	t.first = t.lines.line
	t.fields, t.ends, t.starts = t.fields[:0], t.ends[:0], t.starts[:0]
	if cap(t.text) > 1<<20 {
		t.text = nil
	}
	t.text = t.text[:0]
	rec, f, err := t.split(rec)
	if err != nil {
		return rec, nil, err
	}
	if bad := unreadable(rec); bad != nil {
		return rec, bad, nil
	}
	return rec, f, nil
}

func (t *records) split(rec []byte) ([]byte, *fault, error) {
	for i := 0; ; i++ {
		t.starts = append(t.starts, i)
		var f *fault
		if i < len(rec) && rec[i] == '"' {
			var err error
			if rec, i, f, err = t.quoted(rec, i); err != nil {
				return rec, nil, err
			}
		} else {
			i, f = t.unquoted(rec, i)
		}
		if f != nil {
			return rec, f, nil
		}
		t.ends = append(t.ends, len(t.fields))
		if i == len(rec) || rec[i] == '\r' {
			return rec, nil, nil
		}
	}
}

// unquoted takes the field at i and returns where it ends: at a delimiter, or a
// carriage return or nothing at the end of the record.
func (t *records) unquoted(rec []byte, i int) (int, *fault) {
	start := i
	for ; i < len(rec); i++ {
		switch c := rec[i]; {
		case c == t.delimiter:
			t.fields = append(t.fields, rec[start:i]...)
			return i, nil
		case c == '"':
			return i, &fault{i, `a quote in a field without quotes: put the field in quotes and double the quote, as in "5"" pipe"`}
		case c == '\r' && i+1 < len(rec):
			return i, &fault{i, "a carriage return inside a line: save with LF or CRLF line ends, and put fields with line breaks in quotes"}
		case c == '\r':
			t.fields = append(t.fields, rec[start:i]...)
			return i, nil
		}
	}
	t.fields = append(t.fields, rec[start:]...)
	return i, nil
}

// quoted takes the field whose quote is at i.
func (t *records) quoted(rec []byte, i int) ([]byte, int, *fault, error) {
	open := i
	i++
	for {
		j := bytes.IndexByte(rec[i:], '"')
		if j < 0 {
			t.fields = append(t.fields, rec[i:]...)
			i = len(rec)
			var err error
			if rec, err = t.more(rec); err == io.EOF {
				return rec, i, &fault{open, "the quote that opens here is never closed"}, nil
			} else if err != nil {
				return rec, i, nil, err
			}
			continue
		}
		t.fields = append(t.fields, rec[i:i+j]...)
		i += j + 1
		switch {
		case i == len(rec), rec[i] == t.delimiter, rec[i] == '\r' && i+1 == len(rec):
			return rec, i, nil, nil
		case rec[i] != '"':
			return rec, i, &fault{i, `text after a closing quote: a quote inside a field is doubled, as in "5"" pipe"`}, nil
		}
		t.fields = append(t.fields, '"')
		i++
	}
}

// more appends the next line to a record with an open quote.
func (t *records) more(rec []byte) ([]byte, error) {
	if len(t.text) == 0 {
		t.text = append(t.text, rec...)
	}
	line, err := t.lines.next()
	long, tooLong := err.(*longLine)
	if err != nil && !tooLong {
		return rec, err
	}
	length, quotes := int64(len(line)), 0
	if tooLong {
		length, quotes = long.length, long.quotes
	}
	if limit := t.lines.max; tooLong || len(t.text)+1+len(line) > limit {
		if !tooLong {
			quotes = bytes.Count(line, quoteMark)
		}
		e := &longLine{length: int64(len(t.text)) + 1 + length, max: int64(limit), head: sha256.Sum256(t.text), from: t.first}
		if quotes%2 == 0 {
			return rec, t.skip(e)
		}
		return rec, e
	}
	t.text = append(append(t.text, '\n'), line...)
	return t.text, nil
}

// skip passes over the lines of a record that is too long until its quote is
// closed, and returns e with the whole length. A doubled quote closes and opens
// again, so counting is enough.
func (t *records) skip(e *longLine) error {
	for {
		line, err := t.lines.next()
		long, tooLong := err.(*longLine)
		quotes := 0
		switch {
		case tooLong:
			quotes = long.quotes
			e.length += 1 + long.length
		case err == io.EOF:
			e.unclosed = true
			return e
		case err != nil:
			return err
		default:
			quotes = bytes.Count(line, quoteMark)
			e.length += 1 + int64(len(line))
		}
		if quotes%2 == 1 {
			return e
		}
	}
}

// row returns the fields of the record. They are valid until the next record is
// read, whatever is kept must be cloned: a string of their own would cost a
// sixth of the time a row takes.
func (t *records) row() []string {
	text := unsafe.String(unsafe.SliceData(t.fields), len(t.fields))
	t.values = t.values[:0]
	start := 0
	for _, end := range t.ends {
		t.values = append(t.values, text[start:end])
		start = end
	}
	return t.values
}

// unreadable finds what is no text.
func unreadable(text []byte) *fault {
	if !utf8.Valid(text) {
		return notUTF8(text)
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return &fault{i, "a NUL byte: if this is UTF-16, save it as UTF-8"}
	}
	return nil
}

func notUTF8(text []byte) *fault {
	i := invalidUTF8(text)
	return &fault{i, fmt.Sprintf("not UTF-8 (byte 0x%02x): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8", text[i])}
}
