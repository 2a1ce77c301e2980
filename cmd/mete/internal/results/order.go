package results

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// By says what records are ordered by.
type By string

// The orders. Records that do not tell come last, equal ones stay in the order
// of their file.
const (
	// ByInput is the order of the input: by file and line. Files come in the
	// order in which their first rows were ready.
	ByInput By = "input"
	// ByID puts integers first, by size, then texts, by their bytes.
	ByID By = "id"
	// ByAt is the order in which the rows were ready.
	ByAt By = "at"
)

// Order writes the last record of every row to w in another order. Memory:
// about 40 bytes a row, and its id for ByID.
func Order(in *Input, by By, w io.Writer) error {
	s := sorter{by: by, files: map[string]int{}}
	switch by {
	case ByInput, ByID, ByAt:
	default:
		return fmt.Errorf("--by %q: want input, id or at", by)
	}
	x, err := in.index(s.note)
	defer x.close()
	if err != nil {
		return err
	}
	out := newOutput(w)
	for _, row := range s.sorted() {
		line, err := x.line(int(row))
		if err != nil {
			return err
		}
		if err := out.line(line); err != nil {
			return err
		}
	}
	return out.flush()
}

type sorter struct {
	by    By
	keys  []int64 // by row: a line, a time, or where the id is
	rank  []int32 // by row: the file of its line
	ids   []byte
	files map[string]int
	first []int64 // by file: when its first row was ready
}

func (s *sorter) note(l *line, row int) error {
	if row == len(s.keys) {
		s.keys = append(s.keys, math.MaxInt64)
		if s.by == ByInput {
			s.rank = append(s.rank, 0)
		}
		if s.by == ByID {
			s.keys[row] = int64(len(s.ids))
			s.ids = append(append(s.ids, l.head.ID...), '\n')
		}
	}
	if s.by == ByID {
		return nil
	}
	at, line, name := int64(math.MaxInt64), int64(math.MaxInt64), ""
	err := members(l.text, func(field, value []byte) (err error) {
		switch string(field) {
		case "at":
			at, err = when(value)
		case "line":
			line, err = strconv.ParseInt(string(value), 10, 64)
		case "file":
			name, err = text(value)
		}
		if err != nil {
			err = fmt.Errorf("field %q: %w", field, err)
		}
		return err
	})
	if err != nil {
		return l.fail(err)
	}
	if s.by == ByAt {
		s.keys[row] = at
		return nil
	}
	file, ok := s.files[name]
	if !ok {
		file = len(s.first)
		s.files[name] = file
		s.first = append(s.first, at)
	}
	s.first[file] = min(s.first[file], at)
	s.keys[row], s.rank[row] = line, int32(file)
	return nil
}

// sorted returns the rows in order.
func (s *sorter) sorted() []uint32 {
	rows := make([]uint32, len(s.keys))
	for i := range rows {
		rows[i] = uint32(i)
	}
	switch s.by {
	case ByID:
		slices.SortStableFunc(rows, func(a, b uint32) int { return compareIDs(s.id(a), s.id(b)) })
	case ByAt:
		slices.SortStableFunc(rows, func(a, b uint32) int { return cmp.Compare(s.keys[a], s.keys[b]) })
	default:
		order := s.fileOrder()
		slices.SortStableFunc(rows, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(order[s.rank[a]], order[s.rank[b]]), cmp.Compare(s.keys[a], s.keys[b]))
		})
	}
	return rows
}

func (s *sorter) fileOrder() []int {
	files := make([]int, len(s.first))
	for i := range files {
		files[i] = i
	}
	slices.SortStableFunc(files, func(a, b int) int { return cmp.Compare(s.first[a], s.first[b]) })
	order := make([]int, len(files))
	for place, file := range files {
		order[file] = place
	}
	return order
}

func (s *sorter) id(row uint32) []byte {
	id := s.ids[s.keys[row]:]
	if int(row)+1 < len(s.keys) {
		id = s.ids[s.keys[row]:s.keys[row+1]]
	}
	return id[:len(id)-1]
}

// compareIDs puts integers of any size before texts.
func compareIDs(a, b []byte) int {
	na, nb := integer(a), integer(b)
	switch {
	case na && nb:
		return compareIntegers(a, b)
	case na:
		return -1
	case nb:
		return 1
	}
	return bytes.Compare(a, b)
}

func integer(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte{'-'})
	if len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func compareIntegers(a, b []byte) int {
	switch minusA, minusB := a[0] == '-', b[0] == '-'; {
	case minusA && minusB:
		a, b = b[1:], a[1:]
	case minusA:
		return -1
	case minusB:
		return 1
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// when reads a time as milliseconds since 1970; null is the end of time.
func when(value []byte) (int64, error) {
	if isNull(value) {
		return math.MaxInt64, nil
	}
	s, err := unquote(value)
	if err != nil {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339, string(s))
	if err != nil {
		return 0, errors.New("not a time as in 2026-03-10T12:00:00.000Z")
	}
	return t.UnixMilli(), nil
}
