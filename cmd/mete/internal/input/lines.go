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
	bytes      int64 // read so far, before unpacking
	packed     bool
}

const firstBuffer = 64 << 10

var quoteMark = []byte{'"'}

// longLine is the error for a line above the maximum. The line is skipped and
// the next call goes on after it.
type longLine struct {
	length, max int64
	head        [32]byte // hash of its first bytes: an identity for the row
	quotes      int      // how many quotes are in it
	from        int      // where a record of several lines begins, else 0
	unclosed    bool     // the record has a quote that is never closed
}

func (e *longLine) Error() string {
	switch {
	case e.unclosed:
		return fmt.Sprintf("a quote in the row is never closed (%d > %d bytes)", e.length, e.max)
	case e.from > 0:
		return fmt.Sprintf("row too long (%d > %d bytes): raise run.max_line in mete.yaml, or close its quote", e.length, e.max)
	}
	return fmt.Sprintf("line too long (%d > %d bytes): raise run.max_line in mete.yaml", e.length, e.max)
}

// begin drops a byte order mark, unpacks what is compressed and refuses what is
// not text.
func (l *lineReader) begin() error {
	l.buf = make([]byte, min(firstBuffer, l.max+1))
	for {
		for l.end < min(longestMagic, len(l.buf)) && l.err == nil && bytes.IndexByte(l.buf[:l.end], '\n') < 0 {
			l.fill()
		}
		head := l.buf[:l.end]
		name, remedy := magic(head)
		switch {
		case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
			l.start = 3
		case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
			return errors.New("saved as Unicode text: save it as UTF-8, or convert it with iconv -f UTF-16 -t UTF-8")
		case remedy != "":
			return fmt.Errorf("this is %s: %s", name, remedy)
		case name != "" && l.packed:
			return errors.New("compressed twice: unpack it once before")
		case name != "":
			l.unpack(name)
			continue
		}
		return nil
	}
}

// unpack begins anew with the contents of compressed data.
func (l *lineReader) unpack(name string) {
	rest := io.Reader(&counted{l.r, &l.bytes})
	if l.err != nil {
		rest = failing{l.err}
	}
	l.r = unpack(name, io.MultiReader(bytes.NewReader(bytes.Clone(l.buf[:l.end])), rest))
	l.packed, l.err, l.end = true, nil, 0
}

// counted counts the bytes of compressed data.
type counted struct {
	r io.Reader
	n *int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.n += int64(n)
	return n, err
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
				return nil, &longLine{
					length: int64(len(line)), max: int64(l.max), head: sha256.Sum256(line[:l.max]), quotes: bytes.Count(line, quoteMark),
				}
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
			e.quotes += bytes.Count(l.buf[l.start:l.start+i], quoteMark)
			l.start += i + 1
			break
		}
		e.length += int64(l.end - l.start)
		e.quotes += bytes.Count(l.buf[l.start:l.end], quoteMark)
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
		if !l.packed {
			l.bytes += int64(n)
		}
		if n > 0 || err != nil {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}
