package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Join writes the last record of every row of all files to w, as Fold does, and
// says on Notices how many ids came in several files. If rows is not empty, it
// names a file of input rows in JSON lines, and each record gets the row with
// its id as "input", null if there is none; everything else in the record
// stays byte for byte. Memory: about 24 bytes a record and a row.
func Join(in *Input, rows string, w io.Writer) error {
	if rows == "-" {
		for _, path := range in.Paths {
			if path == "-" {
				return errors.New("- is named twice, but there is one standard input")
			}
		}
	}
	inputs := new(index)
	defer func() { inputs.close() }()
	if rows != "" {
		var err error
		if inputs, err = in.inputRows(rows); err != nil {
			return err
		}
	}
	var records int64
	x, err := in.index(func(*line, int) error { records++; return nil })
	defer x.close()
	if err != nil {
		return err
	}
	out := newOutput(w)
	var without int64
	used := make([]bool, len(inputs.rows))
	for row := range x.rows {
		line, err := x.line(row)
		if err != nil {
			return err
		}
		if rows != "" {
			found, err := withInput(line, inputs, used)
			if err != nil {
				return fmt.Errorf("%s: %w", x.files[x.rows[row].file()].name, err)
			}
			if found == nil {
				without++
				found = null
			}
			if line, err = addInput(line, found); err != nil {
				return fmt.Errorf("%s: %w", x.files[x.rows[row].file()].name, err)
			}
		}
		if err := out.line(line); err != nil {
			return err
		}
	}
	in.reportJoin(x, records)
	if rows != "" {
		var unused int64
		for _, u := range used {
			if !u {
				unused++
			}
		}
		if without > 0 || unused > 0 {
			in.notice("%s: %s without a row here, %s without a record", nameOf(rows), plural(without, "record"), plural(unused, "row"))
		}
	}
	return out.flush()
}

var null = []byte("null")

func (in *Input) reportJoin(x *index, records int64) {
	var several int64
	for _, p := range x.rows {
		if p.several() {
			several++
		}
	}
	s := fmt.Sprintf("%s of %s, %s", plural(records, "record"), plural(int64(len(in.Paths)), "file"), plural(int64(len(x.rows)), "id"))
	if several > 0 {
		s += fmt.Sprintf("; %s in several files, of which the last record counts", progress.Count(several))
	}
	in.notice("joined %s", s)
}

// inputRows indexes the rows of an input in JSON lines by their ids.
func (in *Input) inputRows(path string) (*index, error) {
	rows := &Input{Paths: []string{path}, Stdin: in.Stdin, Notices: in.Notices}
	x := &index{head: rowHead}
	if err := rows.check(); err != nil {
		return x, err
	}
	f, err := rows.openFile(path)
	if err != nil {
		return x, err
	}
	x.files = append(x.files, f)
	lines := record.NewReader(f.section())
	var all, twice, unnamed int64
	for lines.Next() {
		text := lines.Line()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		head, err := rowHead(text)
		if err == nil {
			_, err = record.FullHead(append(append([]byte(`{"id":0,"input":`), bytes.TrimSpace(text)...), '}'))
		}
		if err != nil {
			return x, fmt.Errorf("%s:%d: want a JSON object: %w", f.name, lines.Number(), err)
		}
		all++
		if head.ID == nil {
			unnamed++
			continue
		}
		was := len(x.rows)
		if _, err := x.note(head, 0, lines.Offset()); err != nil {
			return x, err
		}
		if len(x.rows) == was {
			twice++
		}
	}
	if err := lines.Err(); err != nil {
		return x, fmt.Errorf("%s: %w", f.name, err)
	}
	if all > 0 && unnamed == all {
		return x, fmt.Errorf(`%s: no row has an "id" to be found by; give the rows ids, or "meta", which every record repeats`, f.name)
	}
	if unnamed > 0 {
		in.notice("%s: %s without an id cannot be joined", f.name, plural(unnamed, "row"))
	}
	if twice > 0 {
		in.notice("%s: %s again; the last row with an id counts", f.name, plural(twice, "id comes", "ids come"))
	}
	return x, nil
}

// rowHead finds the id of an input row. Without one, ID is nil.
func rowHead(row []byte) (h record.Head, err error) {
	err = members(row, func(name, value []byte) error {
		if string(name) != "id" || isNull(value) {
			return nil
		}
		if value[0] != '"' {
			h.ID = value
			return nil
		}
		id, err := unquote(value)
		if id == nil {
			id = []byte{}
		}
		h.ID = id
		return err
	})
	return h, err
}

// withInput returns the input row of a record, or nil.
func withInput(line []byte, inputs *index, used []bool) ([]byte, error) {
	head, err := record.ReadHead(line)
	if err != nil {
		return nil, err
	}
	id := record.Head{ID: head.ID}
	_, row, err := inputs.find(record.Sum(id.ID), id)
	if err != nil || row < 0 {
		return nil, err
	}
	used[row] = true
	text, err := inputs.line(row)
	return bytes.TrimSpace(text), err
}

// addInput puts the row behind the last member of the record.
func addInput(line, row []byte) ([]byte, error) {
	line = bytes.TrimRight(line, " \t\r")
	err := members(line, func(name, _ []byte) error {
		if string(name) == "input" {
			return errors.New(`a record has an "input" already: join the file that mete run wrote`)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(line)+len(row)+len(`,"input":`))
	out = append(out, line[:len(line)-1]...)
	out = append(out, `,"input":`...)
	out = append(out, row...)
	return append(out, '}'), nil
}
