package results

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// maxFiles is the number of files that an index can tell apart.
const maxFiles = 1 << 15

// stream is an open file with what decompresses it.
type stream struct {
	io.Reader
	close []func() error
}

func (s *stream) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	return errors.Join(errs...)
}

// open opens a file for reading once, decompressed.
func (in *Input) open(path string) (*stream, error) {
	s := &stream{Reader: in.Stdin}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		s.Reader = f
		s.close = append(s.close, f.Close)
	}
	s.Reader = &diskReader{s.Reader}
	if err := s.decompress(nameOf(path)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// The first bytes of compressed files.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func (s *stream) decompress(name string) error {
	b := bufio.NewReaderSize(s.Reader, 64<<10)
	s.Reader = b
	start, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	switch {
	case bytes.HasPrefix(start, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("%s: damaged gzip data: %w", name, err)
		}
		s.Reader = &damaged{z, "gzip"}
		s.close = append(s.close, z.Close)
	case bytes.HasPrefix(start, zstdMagic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return fmt.Errorf("%s: damaged zstd data: %w", name, err)
		}
		s.Reader = &damaged{z, "zstd"}
		s.close = append(s.close, func() error { z.Close(); return nil })
	}
	return nil
}

// diskReader marks the errors of the system.
type diskReader struct{ r io.Reader }

func (d *diskReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = &FileError{err}
	}
	return n, err
}

// damaged says which data are, when they are.
type damaged struct {
	r      io.Reader
	format string
}

func (d *damaged) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("the %s data are cut off: decompress what is there with another tool, and read that", d.format)
	}
	if _, ok := errors.AsType[*FileError](err); ok {
		return n, err
	}
	return n, fmt.Errorf("damaged %s data: %w", d.format, err)
}

// file is an open file that can be read in any order.
type file struct {
	name string
	f    *os.File
	size int64
	// fetch and compare read lines; two, so that one can go in sequence.
	fetch, compare fetcher
}

// openFile opens a file for reading in any order: itself, or a copy in the
// temporary folder if it is compressed or a pipe. Its size is taken once, for
// the file may be growing. The copy has no name and so goes with the process.
func (in *Input) openFile(path string) (*file, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && info.Mode().IsRegular() && !compressed(f) {
			return newFile(path, f, info.Size()), nil
		}
		f.Close()
		if err != nil {
			return nil, &FileError{err}
		}
	}
	s, err := in.open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	tmp, err := os.CreateTemp("", "mete-results-*")
	if err != nil {
		return nil, &FileError{fmt.Errorf("%s has to be copied to be read in another order: %w", nameOf(path), err)}
	}
	if err := os.Remove(tmp.Name()); err != nil {
		tmp.Close()
		return nil, &FileError{err}
	}
	n, err := io.Copy(&diskWriter{tmp}, s)
	if err != nil {
		tmp.Close()
		return nil, fmt.Errorf("%s: %w", nameOf(path), err)
	}
	return newFile(nameOf(path), tmp, n), nil
}

func newFile(name string, f *os.File, size int64) *file {
	x := &file{name: name, f: f, size: size}
	x.fetch.src, x.compare.src = x.section(), x.section()
	return x
}

func (f *file) section() *io.SectionReader { return io.NewSectionReader(f.f, 0, f.size) }

type diskWriter struct{ w io.Writer }

func (d *diskWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if err != nil {
		err = &FileError{err}
	}
	return n, err
}

func compressed(f io.ReaderAt) bool {
	start := make([]byte, 4)
	n, _ := f.ReadAt(start, 0)
	return bytes.HasPrefix(start[:n], gzipMagic) || bytes.HasPrefix(start[:n], zstdMagic)
}

// fetcher reads the lines at given offsets. As long as they follow each other
// it reads far ahead, else little.
type fetcher struct {
	src   *io.SectionReader
	buf   []byte
	start int64 // where buf lies
	next  int64 // behind the last line
}

const (
	shortRead = 4 << 10
	longRead  = 256 << 10
)

// line returns the line at offset without its line feed. It is valid until the
// next call.
func (f *fetcher) line(offset int64) ([]byte, error) {
	from := offset - f.start
	if from < 0 || from > int64(len(f.buf)) {
		from = 0
		f.start, f.buf = offset, f.buf[:0]
	}
	ahead := shortRead
	if offset == f.next {
		ahead = longRead
	}
	rest := f.buf[from:]
	seen := 0
	for {
		if i := bytes.IndexByte(rest[seen:], '\n'); i >= 0 {
			f.next = offset + int64(seen+i) + 1
			return rest[:seen+i], nil
		}
		seen = len(rest)
		if from > 0 {
			f.buf = f.buf[:copy(f.buf, rest)]
			f.start, from = offset, 0
		}
		have := len(f.buf)
		if grow := max(ahead, have); cap(f.buf) < have+grow {
			f.buf = append(make([]byte, 0, have+grow), f.buf...)
		}
		n, err := f.src.ReadAt(f.buf[have:have+max(ahead, have)], offset+int64(have))
		f.buf = f.buf[:have+n]
		rest = f.buf
		if n == 0 && err == io.EOF {
			if seen == 0 {
				return nil, &FileError{io.ErrUnexpectedEOF} // the file was cut meanwhile
			}
			f.next = offset + int64(seen)
			return rest, nil
		}
		if err != nil && err != io.EOF {
			return nil, &FileError{err}
		}
	}
}
