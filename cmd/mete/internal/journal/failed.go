package journal

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// WriteFailed writes the last record of every row that is not ok to w, in the
// order of the file; of a stream it writes nothing. It reads the whole file,
// about a second per gigabyte, and holds some 50 bytes for each failed row. What
// is appended meanwhile may be left out.
func (j *Journal) WriteFailed(w io.Writer) error {
	if j.path == "" {
		return nil
	}
	f, err := os.Open(j.path)
	if err != nil {
		return err
	}
	defer f.Close()
	type span struct{ start, size int64 }
	failed := map[uint64]span{}
	lines := record.NewReader(f)
	for lines.Next() {
		head, err := record.ReadHead(lines.Line())
		switch {
		case err != nil: // blank, or the file would not have been opened
		case head.OK:
			delete(failed, keyOf(head.Key))
		default:
			failed[keyOf(head.Key)] = span{lines.Offset(), int64(len(lines.Line()))}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	inOrder := slices.SortedFunc(maps.Values(failed), func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := bufio.NewWriter(w)
	for _, s := range inOrder {
		if _, err := io.Copy(out, io.NewSectionReader(f, s.start, s.size)); err != nil {
			return err
		}
	}
	return out.Flush()
}
