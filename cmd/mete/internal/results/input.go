// Package results works with the result files of mete run: it folds, joins,
// filters, orders and sums up records, and writes them as CSV or as the output
// of a batch service.
//
// Where records come out again they come out byte for byte. Files may be
// compressed with gzip or zstd, which is told by their first bytes, and may
// still be growing.
package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Input names the result files to read, one after another.
type Input struct {
	// Paths are files and named pipes; "-" is Stdin.
	Paths []string
	Stdin io.Reader
	// Notices gets a line for everything that was left out, or that the user
	// should know. Must not be nil.
	Notices io.Writer
	// SkipBad leaves out lines that are no record instead of failing.
	SkipBad bool
}

// FileError is a failure to read or write a local file, other than a file that
// is missing or holds something else than records.
type FileError struct{ Err error }

func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns what the system said.
func (e *FileError) Unwrap() error { return e.Err }

// line is one record as it stands in its file.
type line struct {
	text   []byte // without its line feed; valid until the next line
	head   record.Head
	file   int // index in Paths
	name   string
	number int64
	offset int64
}

// fail says what is wrong with the line, and where it is.
func (l *line) fail(err error) error { return fmt.Errorf("%s:%d: %w", l.name, l.number, err) }

func (in *Input) notice(format string, args ...any) {
	fmt.Fprintf(in.Notices, "mete: "+format+"\n", args...)
}

// check refuses what cannot be read, before anything is.
func (in *Input) check() error {
	stdins := 0
	for _, path := range in.Paths {
		if path == "-" {
			if stdins++; stdins > 1 {
				return errors.New("- is named twice, but there is one standard input")
			}
			continue
		}
		if info, err := os.Stat(path); err != nil {
			return err
		} else if info.IsDir() {
			return fmt.Errorf("%s is a directory", path)
		}
	}
	if len(in.Paths) > maxFiles {
		return fmt.Errorf("%d files, at most %d can be read at a time", len(in.Paths), maxFiles)
	}
	return nil
}

// each calls f with every record of every file. Every line is checked whole.
func (in *Input) each(f func(*line) error) error {
	if err := in.check(); err != nil {
		return err
	}
	for i, path := range in.Paths {
		src, err := in.open(path)
		if err != nil {
			return err
		}
		err = in.scan(i, src, record.FullHead, f)
		src.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// scan calls f with every record of one file. A bad line is an error, or left
// out, save the last one: that may have been cut off by a kill.
func (in *Input) scan(file int, src io.Reader, read func([]byte) (record.Head, error), f func(*line) error) error {
	l := line{file: file, name: nameOf(in.Paths[file])}
	lines := record.NewReader(src)
	var records, bad int64
	var first, last error // bad lines; last is that of the line before, if it was bad
	var torn bool
	var tail int64
	for lines.Next() {
		if last != nil {
			if !in.SkipBad {
				return remedy(last)
			}
			first, last = or(first, last), nil
			bad++
		}
		text := lines.Line()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l.text, l.number, l.offset = bytes.TrimSuffix(text, []byte{'\n'}), lines.Number(), lines.Offset()
		var err error
		if l.head, err = read(text); err != nil {
			last = l.fail(fmt.Errorf("not a record of mete: %w", err))
			torn = records+bad > 0 || record.Torn(text[:min(len(text), 64)])
			tail = int64(len(text))
			continue
		}
		records++
		if err := f(&l); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	switch {
	case last == nil:
	case torn:
		in.notice("%s: left out %d bytes of a torn record at the end", l.name, tail)
	case !in.SkipBad:
		return remedy(last)
	default:
		first = or(first, last)
		bad++
	}
	if bad > 0 {
		in.notice("left out %s; the first: %v", plural(bad, "bad line"), first)
	}
	return nil
}

func remedy(bad error) error {
	return fmt.Errorf("%w; correct or remove the line, or add --skip-bad", bad)
}

func or(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func nameOf(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}
