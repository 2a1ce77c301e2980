package input

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// lineReader cuts a stream into lines with one buffer that grows to the longest
// line, at most max. bufio.Scanner is not used: it ends the input at the first
// long line (golang/go#26431).
type lineReader struct {
	r          io.Reader
	max        int
	buf        []byte
	start, end int // unread bytes
	err        error
	line       int   // number of the line last returned, from 1
	bytes      int64 // read so far
}

const firstBuffer = 64 << 10

// longLine is the error for a line above the maximum. The line is skipped and
// the next call goes on after it.
type longLine struct {
	length, max int64
	head        [32]byte // hash of its first bytes: an identity for the row
}

func (e *longLine) Error() string {
	return fmt.Sprintf("line too long (%d > %d bytes): raise --max-line", e.length, e.max)
}

// begin drops a byte order mark and refuses what is not text.
func (l *lineReader) begin() error {
	l.buf = make([]byte, min(firstBuffer, l.max+1))
	for l.end < min(4, len(l.buf)) && l.err == nil && bytes.IndexByte(l.buf[:l.end], '\n') < 0 {
		l.fill()
	}
	head := l.buf[:l.end]
	switch {
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		l.start = 3
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return errors.New("saved as Unicode text: save it as UTF-8")
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return errors.New("gzip input is not available yet: pipe it through gunzip")
	case bytes.HasPrefix(head, []byte{0x28, 0xB5, 0x2F, 0xFD}):
		return errors.New("zstd input is not available yet: pipe it through unzstd")
	}
	return nil
}

// next returns the next line without its newline, valid until the next call.
// The error is io.EOF after the last line, a *longLine, or what the reader
// said; then a line cut off by the error is not returned, because half a row
// must not be sent.
func (l *lineReader) next() ([]byte, error) {
	if l.buf == nil {
		if err := l.begin(); err != nil {
			l.err = err
			l.start = l.end
		}
	}
	seen := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+seen:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.start+seen+i]
			l.start += seen + i + 1
			l.line++
			if len(line) > l.max {
				return nil, &longLine{int64(len(line)), int64(l.max), sha256.Sum256(line[:l.max])}
			}
			return line, nil
		}
		seen = l.end - l.start
		if seen > l.max {
			return nil, l.skip()
		}
		if l.err != nil {
			if seen == 0 || l.err != io.EOF {
				return nil, l.err
			}
			line := l.buf[l.start:l.end]
			l.start = l.end
			l.line++
			return line, nil
		}
		l.fill()
	}
}

// skip passes over the rest of a line that is too long; its bytes are not kept.
func (l *lineReader) skip() error {
	e := &longLine{max: int64(l.max), head: sha256.Sum256(l.buf[l.start : l.start+l.max])}
	for {
		if i := bytes.IndexByte(l.buf[l.start:l.end], '\n'); i >= 0 {
			e.length += int64(i)
			l.start += i + 1
			break
		}
		e.length += int64(l.end - l.start)
		l.start = l.end
		if l.err == io.EOF {
			break
		}
		if l.err != nil {
			return l.err
		}
		l.fill()
	}
	l.line++
	return e
}

// fill reads once, making room first.
func (l *lineReader) fill() {
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		// One byte above the maximum shows that a line is too long.
		grown := make([]byte, min(2*len(l.buf), l.max+firstBuffer))
		copy(grown, l.buf)
		l.buf = grown
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.bytes += int64(n)
		if n > 0 || err != nil {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}
