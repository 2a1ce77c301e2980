package input

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// Source reads rows, file after file, through one buffer. Its methods must not
// be called at the same time, save for Close.
type Source struct {
	options Options
	paths   []string
	stdin   io.Reader

	mu     sync.Mutex // guards file, for Close
	file   io.Closer
	closed atomic.Bool

	lines     *lineReader // of the current file, nil between files
	name      string      // of the current file
	dir       string
	format    string             // of the current file, "auto" until its first row
	bytes     int64              // of the files before
	err       error              // that ended the reading
	template  *template.Template // compiled for the current file, or nil
	names     []string           // of the values the template takes
	table     *columns           // of the current file, if it is one or plain lines
	values    []string           // of the row, for JSON objects and lines
	separator byte               // told by the line "sep=;" of the current file, or 0
	identity  identity
	ids       ids
	skipped   int64
	spare     *Row
}

// Open checks the options and that every path can be read; "-" or no path at
// all means stdin. Files are opened one at a time as they are reached. Opening
// a FIFO waits for a writer then, not here.
func Open(paths []string, stdin io.Reader, o Options) (*Source, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	stdins := 0
	for _, path := range paths {
		if path == "-" {
			stdins++
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			return nil, fmt.Errorf("%s is a directory", path)
		}
	}
	switch {
	case stdins > 1:
		return nil, errors.New(`standard input ("-") can be read only once`)
	case stdins == 1 && stdin == nil:
		return nil, errors.New("there is no standard input to read")
	}
	return &Source{options: o, paths: paths, stdin: stdin}, nil
}

// Rows yields the rows that are left. A *RowError stands for one bad row and
// the next rows follow; any other error is the last. Breaking off leaves the
// Source where it is: call Close to free the file.
func (s *Source) Rows() iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for {
			row, err := s.Next()
			if err == io.EOF {
				return
			}
			if !yield(row, err) {
				return
			}
			if _, bad := err.(*RowError); err != nil && !bad {
				return
			}
		}
	}
}

// Next returns the next row, a *RowError for a bad one, io.EOF after the last,
// or the error that ended the reading, which it then returns again. It blocks
// as long as the file, pipe or standard input does.
func (s *Source) Next() (*Row, error) {
	for s.err == nil {
		if s.closed.Load() {
			s.err = os.ErrClosed
			break
		}
		if s.lines == nil {
			if len(s.paths) == 0 {
				s.err = io.EOF
				break
			}
			if s.err = s.open(s.paths[0]); s.err != nil {
				break
			}
			s.paths = s.paths[1:]
		}
		line, err := s.lines.next()
		var row *Row
		if long, ok := err.(*longLine); ok {
			err = s.tooLong(long)
		} else if err == nil {
			row, err = s.read(line)
		}
		switch err := err.(type) {
		case nil:
			if row != nil {
				return row, nil
			}
		case *RowError:
			return nil, err
		default:
			s.finish(err)
		}
	}
	return nil, s.err
}

// read returns the row that begins with a line, a *RowError, or an error that
// ends the reading. Without either the line holds none.
func (s *Source) read(line []byte) (*Row, error) {
	if s.format == "csv" || s.format == "tsv" {
		return s.record(line)
	}
	at := indent(line)
	if at == len(line) {
		return nil, nil
	}
	if s.format == "auto" {
		s.format = s.options.formatBy(line)
	}
	if s.format == "urls" && line[at] == '#' {
		return nil, nil
	}
	if err := s.compile(); err != nil {
		return nil, err
	}
	row := s.row(s.lines.line)
	var f *fault
	switch {
	case s.format == "urls":
		f = s.parseURLs(row, line)
	case s.format == "lines":
		f = s.parseLine(row, line)
	case s.template != nil:
		f = s.parseObject(row, line)
	default:
		f = row.parseJSON(line, &s.options, s.dir)
	}
	return s.complete(row, line, f)
}

// row begins a row, in the memory of one that Sum has done with if there is.
func (s *Source) row(line int) *Row {
	row := s.spare
	if s.spare = nil; row == nil {
		row = new(Row)
	}
	*row = Row{File: s.name, Line: line}
	return row
}

func (s *Source) open(path string) error {
	s.format, s.template, s.table, s.separator = s.options.Format, nil, nil, 0
	if s.format == "auto" {
		s.format = formatOf(path)
	}
	if s.format != "auto" {
		if err := s.options.needs(s.format); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	s.name, s.dir = path, filepath.Dir(path)
	s.ids.file(path)
	if path == "-" {
		s.name, s.dir = "stdin", "."
		s.lines = &lineReader{r: s.stdin, max: s.options.MaxLine}
		return nil
	}
	f, err := openFile(path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		f.Close()
		return os.ErrClosed
	}
	s.file = f
	s.lines = &lineReader{r: f, max: s.options.MaxLine}
	return nil
}

// finish ends the current file, and the reading if err is not io.EOF.
func (s *Source) finish(err error) {
	switch {
	case s.closed.Load():
		s.err = os.ErrClosed
	case err != io.EOF:
		s.err = s.named(err)
	}
	s.bytes += s.lines.bytes
	s.ids.lines += uint64(s.lines.line)
	s.lines = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// named adds the name of the file to an error that lacks it.
func (s *Source) named(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	switch err.(type) {
	case *FileError, *template.Error:
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// complete gives a row its identity. It returns nothing for a duplicate that is
// left out.
func (s *Source) complete(row *Row, text []byte, f *fault) (*Row, error) {
	if f != nil {
		if row.IDGiven && s.ids.claim(s.identity.keyOf(row.ID), row.Line) != 0 {
			row.ID = ""
		}
		e := s.bad(row.ID, row.Line, text, f)
		e.NumericID = row.NumericID && row.ID != ""
		return nil, e
	}
	s.identity.request(row)
	if !row.IDGiven {
		row.ID, row.Key, row.occurrence = s.identity.name(row.Hash)
	} else if ok, f := s.claim(row); f != nil {
		return nil, s.bad("", row.Line, text, f) // its id belongs to the row before
	} else if !ok {
		s.skipped++
		return nil, nil
	}
	row.Size = row.size()
	if s.options.Check != nil {
		if err := s.options.Check(row); err != nil {
			id := ""
			if row.IDGiven {
				id = row.ID
			}
			e := s.bad(id, row.Line, text, &fault{-1, err.Error()})
			e.cause, e.NumericID = err, row.NumericID
			return nil, e
		}
	}
	return row, nil
}

// bad makes an error of a mistake in the text of a row, which begins at a line.
func (s *Source) bad(id string, first int, text []byte, f *fault) *RowError {
	e := &RowError{File: s.name, Line: first, Message: f.msg, ID: id}
	if f.at >= 0 {
		e.locate(text, f.at)
	}
	s.nameBad(e, sha256.Sum256(text))
	return e
}

// tooLong makes an error of a line, or a record of a table, that is too long.
func (s *Source) tooLong(long *longLine) error {
	e := &RowError{File: s.name, Line: s.lines.line}
	table := s.format == "csv" || s.format == "tsv"
	switch {
	case long.from > 0:
		e.Line = long.from
	case table && long.quotes%2 == 1:
		long.from = e.Line
		t := records{lines: s.lines}
		if err := t.skip(long); err != error(long) {
			return err
		}
	}
	e.Message = long.Error()
	if table && s.table == nil {
		return &FileError{*e}
	}
	s.nameBad(e, long.head)
	return e
}

func (s *Source) nameBad(e *RowError, sum [32]byte) {
	sum = sha256.Sum256(append([]byte("bad\x00"), sum[:]...))
	id, key, _ := s.identity.name([16]byte(sum[:16]))
	e.Key = key
	if e.ID == "" {
		e.ID = id
	}
}

// Bytes returns how many bytes have been read.
func (s *Source) Bytes() int64 {
	if s.lines == nil {
		return s.bytes
	}
	return s.bytes + s.lines.bytes
}

// Columns returns the names of the columns of the table read last, in their
// order; nil if there was none.
func (s *Source) Columns() []string {
	if s.table == nil {
		return nil
	}
	return slices.Clone(s.table.names)
}

// Skipped returns how many duplicates were left out.
func (s *Source) Skipped() int64 { return s.skipped }

// Close frees the open file and ends a read that waits for a pipe; standard
// input is left alone. Next then returns an error. It may be called twice, and
// while Next blocks.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
