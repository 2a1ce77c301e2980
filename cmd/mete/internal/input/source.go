package input

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Options say how to read the input. The zero value tells the format by itself
// and refuses duplicate ids.
type Options struct {
	Format  string // "auto" (or empty), "urls" or "jsonl"
	MaxLine int    // longest line in bytes; 0 means 16 MiB
	// BaseURL resolves URLs without a scheme, if not nil.
	BaseURL *url.URL
	// ResolveProvider returns the base URL of a provider named by a row, which
	// may be nil. A nil func takes any name and resolves on BaseURL.
	ResolveProvider func(name string) (base *url.URL, ok bool)
	// AllowFiles permits body_file.
	AllowFiles bool
	// OnDuplicate says what becomes of a second row with the same id: "fail" (or
	// empty) makes it a RowError, "suffix" appends "-2", "-3" to its id, "skip"
	// leaves it out.
	OnDuplicate string
}

// DefaultMaxLine is the longest line read unless Options say otherwise.
const DefaultMaxLine = 16 << 20

// formats says which formats can be read; the others are still to come.
var formats = map[string]bool{
	"auto": true, "urls": true, "jsonl": true,
	"csv": false, "tsv": false, "lines": false, "openai-batch": false, "anthropic-batch": false,
}

func (o Options) check() (Options, error) {
	if o.Format == "" {
		o.Format = "auto"
	}
	switch ready, known := formats[o.Format]; {
	case !known:
		return o, fmt.Errorf("unknown input format %q: want auto, urls or jsonl", o.Format)
	case !ready:
		return o, fmt.Errorf("input format %q is not available yet", o.Format)
	}
	switch o.OnDuplicate {
	case "":
		o.OnDuplicate = "fail"
	case "fail", "suffix", "skip":
	default:
		return o, fmt.Errorf("unknown treatment %q of duplicate ids: want fail, suffix or skip", o.OnDuplicate)
	}
	switch {
	case o.MaxLine < 0:
		return o, fmt.Errorf("the longest line is negative: %d", o.MaxLine)
	case o.MaxLine == 0:
		o.MaxLine = DefaultMaxLine
	}
	if u := o.BaseURL; u != nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return o, errors.New("the base URL wants http:// or https:// and a host")
	}
	return o, nil
}

// Source reads rows, file after file, through one buffer. Its methods must not
// be called at the same time, save for Close.
type Source struct {
	options Options
	paths   []string
	stdin   io.Reader

	mu     sync.Mutex // guards file, for Close
	file   io.Closer
	closed atomic.Bool

	lines    *lineReader // of the current file, nil between files
	name     string      // of the current file
	dir      string
	format   string // of the current file, "auto" until its first row
	bytes    int64  // of the files before
	err      error  // that ended the reading
	identity identity
	ids      ids
	skipped  int64
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
		if long, ok := err.(*longLine); ok {
			return nil, s.badLine(long)
		}
		if err != nil {
			s.finish(err)
			continue
		}
		at := indent(line)
		if at == len(line) {
			continue
		}
		if line[at] == '#' && s.format != "jsonl" {
			s.format = "urls"
			continue
		}
		row, rowErr := s.parse(line)
		switch {
		case rowErr != nil:
			return nil, rowErr
		case row != nil:
			return row, nil
		}
	}
	return nil, s.err
}

func (s *Source) open(path string) error {
	s.format = s.options.Format
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
		if _, ok := errors.AsType[*os.PathError](err); !ok {
			err = fmt.Errorf("%s: %w", s.name, err)
		}
		s.err = err
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

// parse returns the row of a line, or nil for a duplicate that is left out.
func (s *Source) parse(line []byte) (*Row, error) {
	if s.format == "auto" {
		switch line[indent(line)] {
		case '{', '[', '"':
			s.format = "jsonl"
		default:
			s.format = "urls"
		}
	}
	row := &Row{File: s.name, Line: s.lines.line}
	var f *fault
	if s.format == "jsonl" {
		f = row.parseJSON(line, &s.options, s.dir)
	} else {
		f = row.parseURLs(line, s.options.BaseURL)
	}
	if f != nil {
		if row.IDGiven && s.ids.claim(s.identity.keyOf(row.ID), row.Line) != 0 {
			row.ID = ""
		}
		return nil, s.bad(row.ID, line, f)
	}
	s.identity.request(row)
	if !row.IDGiven {
		row.ID, row.Key = s.identity.name(row.Hash)
	} else if ok, f := s.claim(row); f != nil {
		return nil, s.bad("", line, f) // its id belongs to the row before
	} else if !ok {
		s.skipped++
		return nil, nil
	}
	row.Size = row.size()
	return row, nil
}

func (s *Source) bad(id string, line []byte, f *fault) *RowError {
	e := &RowError{File: s.name, Line: s.lines.line, Message: f.msg, ID: id}
	if f.at >= 0 {
		e.Column = f.at + 1
		e.show(line, f.at)
	}
	sum := sha256.Sum256(line)
	s.nameBad(e, sum)
	return e
}

func (s *Source) badLine(long *longLine) *RowError {
	e := &RowError{File: s.name, Line: s.lines.line, Message: long.Error()}
	s.nameBad(e, long.head)
	return e
}

func (s *Source) nameBad(e *RowError, sum [32]byte) {
	sum = sha256.Sum256(append([]byte("bad\x00"), sum[:]...))
	id, key := s.identity.name([16]byte(sum[:16]))
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
