package record

import (
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line that a Reader takes, in bytes.
const MaxLine = 1 << 30

// Reader reads the lines of a result file. Its memory is bounded by the
// longest line.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int // unread part of buf
	searched   int // bytes of it known to hold no line feed

	line   []byte
	offset int64
	number int64
	whole  bool
	err    error
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, buf: make([]byte, 128<<10)}
}

// Next reads the next line. It returns false at the end and on an error.
func (r *Reader) Next() bool {
	r.offset += int64(len(r.line))
	r.line = nil
	for {
		if i := bytes.IndexByte(r.buf[r.start+r.searched:r.end], '\n'); i >= 0 {
			r.take(r.searched+i+1, true)
			return true
		}
		r.searched = r.end - r.start
		if r.err != nil {
			if r.err != io.EOF || r.searched == 0 {
				return false
			}
			r.take(r.searched, false)
			return true
		}
		r.fill()
	}
}

func (r *Reader) take(n int, whole bool) {
	r.line = r.buf[r.start : r.start+n]
	r.start += n
	r.searched = 0
	r.number++
	r.whole = whole
}

func (r *Reader) fill() {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.start = 0
	}
	if r.end == len(r.buf) {
		if len(r.buf) >= MaxLine {
			r.err = fmt.Errorf("line %d is longer than %d bytes", r.number+1, MaxLine)
			return
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// Line returns the line with its line feed. It is valid until the next call of
// Next.
func (r *Reader) Line() []byte { return r.line }

// Offset returns where the line starts.
func (r *Reader) Offset() int64 { return r.offset }

// Number returns the number of the line, from 1.
func (r *Reader) Number() int64 { return r.number }

// Whole reports whether the line ends with a line feed.
func (r *Reader) Whole() bool { return r.whole }

// Err returns the error that ended the lines, nil at the end of the file.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}
