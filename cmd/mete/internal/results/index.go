package results

import (
	"bufio"
	"bytes"
	"io"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// index knows where the last record of every row is: 16 bytes a row, and 4 to
// 8 in the table.
type index struct {
	files []*file
	rows  []place  // in order of first appearance
	table []uint32 // open addressing by sum: index into rows + 1
	// head reads what tells one row from another out of a line.
	head func(line []byte) (record.Head, error)
}

// place is where a line is: its file in the 15 highest bits, then its offset,
// and whether it has been in several files in the lowest.
type place struct{ sum, at uint64 }

func placeAt(file int, offset int64) uint64 { return uint64(file)<<49 | uint64(offset)<<1 }

func (p place) file() int     { return int(p.at >> 49) }
func (p place) offset() int64 { return int64(p.at << 15 >> 16) }
func (p place) several() bool { return p.at&1 != 0 }

// index reads all files and indexes their records. noted, if not nil, is
// called with each record and the number of its row, from 0 in order of first
// appearance. Close the index in any case.
func (in *Input) index(noted func(l *line, row int) error) (*index, error) {
	x := &index{head: record.ReadHead}
	if err := in.check(); err != nil {
		return x, err
	}
	for i, path := range in.Paths {
		f, err := in.openFile(path)
		if err != nil {
			return x, err
		}
		x.files = append(x.files, f)
		err = in.scan(i, f.section(), f.readHead(), func(l *line) error {
			row, err := x.note(l.head, i, l.offset)
			if err == nil && noted != nil {
				err = noted(l, row)
			}
			return err
		})
		if err != nil {
			return x, err
		}
	}
	return x, nil
}

// readHead is record.ReadHead for the lines in sequence, which checks the last
// one whole: only that one can be torn.
func (f *file) readHead() func([]byte) (record.Head, error) {
	var read int64
	return func(line []byte) (record.Head, error) {
		read += int64(len(line))
		head, err := record.ReadHead(line)
		if err == nil && (line[len(line)-1] != '\n' || read >= f.size) {
			return record.FullHead(line)
		}
		return head, err
	}
}

func (x *index) close() {
	for _, f := range x.files {
		f.f.Close()
	}
}

// note enters one record and returns the number of its row.
func (x *index) note(head record.Head, file int, offset int64) (int, error) {
	if (len(x.rows)+1)*4 > len(x.table)*3 {
		x.grow()
	}
	sum := record.Sum(head.ID)
	slot, row, err := x.find(sum, head)
	if err != nil {
		return 0, err
	}
	if row < 0 {
		x.rows = append(x.rows, place{sum, placeAt(file, offset)})
		x.table[slot] = uint32(len(x.rows))
		return len(x.rows) - 1, nil
	}
	was := x.rows[row]
	several := was.at & 1
	if was.file() != file {
		several = 1
	}
	x.rows[row].at = placeAt(file, offset) | several
	return row, nil
}

// find returns the row of a record and, if there is none yet, its slot in the
// table and -1. Rows are told apart by id and key; where sums of ids are equal
// the records are compared, so no row is ever lost to chance.
func (x *index) find(sum uint64, head record.Head) (slot uint64, row int, err error) {
	if len(x.table) == 0 {
		return 0, -1, nil
	}
	mask := uint64(len(x.table) - 1)
	for slot = sum & mask; x.table[slot] != 0; slot = (slot + 1) & mask {
		row := int(x.table[slot] - 1)
		p := x.rows[row]
		if p.sum != sum {
			continue
		}
		line, err := x.files[p.file()].compare.line(p.offset())
		if err != nil {
			return 0, 0, err
		}
		was, err := x.head(line)
		if err != nil {
			return 0, 0, err
		}
		if bytes.Equal(was.ID, head.ID) && was.Key == head.Key {
			return slot, row, nil
		}
	}
	return slot, -1, nil
}

func (x *index) grow() {
	x.table = make([]uint32, max(1024, 2*len(x.table)))
	mask := uint64(len(x.table) - 1)
	for n, row := range x.rows {
		i := row.sum & mask
		for x.table[i] != 0 {
			i = (i + 1) & mask
		}
		x.table[i] = uint32(n + 1)
	}
}

// line returns the last record of a row without its line feed, valid until the
// next call.
func (x *index) line(row int) ([]byte, error) {
	p := x.rows[row]
	return x.files[p.file()].fetch.line(p.offset())
}

// Fold writes the last record of every row to w, in the order in which the rows
// first appear. Over several files, the later one wins. Memory: about 24 bytes
// a row.
func Fold(in *Input, w io.Writer) error {
	x, err := in.index(nil)
	defer x.close()
	if err != nil {
		return err
	}
	out := newOutput(w)
	for row := range x.rows {
		line, err := x.line(row)
		if err != nil {
			return err
		}
		if err := out.line(line); err != nil {
			return err
		}
	}
	return out.flush()
}

// output writes lines.
type output struct{ w *bufio.Writer }

func newOutput(w io.Writer) output { return output{bufio.NewWriterSize(&diskWriter{w}, 256<<10)} }

// line writes one line and its line feed.
func (o output) line(text []byte) error {
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	return o.w.WriteByte('\n')
}

func (o output) flush() error { return o.w.Flush() }
