package journal

import (
	"bytes"
	"io"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// tail says how a result file ends and what to do about it.
type tail struct {
	end     int64 // keep the file up to here
	newline bool  // and add a line feed
	dropped int64 // bytes behind end
	ours    bool  // they look like the beginning of a record
}

// findTail checks the last line. Only this one can be torn: all others were
// followed by another write. It changes nothing.
func findTail(f io.ReaderAt, size int64) (tail, error) {
	start, err := lastLine(f, size)
	if err != nil || start == size {
		return tail{end: size}, err
	}
	if size-start > record.MaxLine {
		return tail{end: start, dropped: size - start}, nil
	}
	line := make([]byte, size-start)
	if _, err := f.ReadAt(line, start); err != nil && err != io.EOF {
		return tail{}, err
	}
	whole := line[len(line)-1] == '\n'
	if whole && len(bytes.TrimSpace(line)) == 0 {
		return tail{end: size}, nil
	}
	if _, err := record.FullHead(line); err != nil {
		return tail{end: start, dropped: size - start, ours: record.Torn(line)}, nil
	}
	return tail{end: size, newline: !whole}, nil
}

// lastLine returns where the last line starts.
func lastLine(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size - 1; end > 0; { // the last byte may be the line's own line feed
		part := buf[:min(end, int64(len(buf)))]
		end -= int64(len(part))
		if _, err := f.ReadAt(part, end); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// scan puts all records into x and returns their number. Blank lines pass,
// others that are no record do not.
func scan(r io.Reader, path string, x *index) (records int64, err error) {
	lines := record.NewReader(r)
	for lines.Next() {
		head, err := record.ReadHead(lines.Line())
		if err != nil {
			if len(bytes.TrimSpace(lines.Line())) == 0 {
				continue
			}
			return 0, &BadLineError{Path: path, Line: lines.Number(), Offset: lines.Offset(), Err: err}
		}
		x.put(&head)
		records++
	}
	return records, lines.Err()
}
