package input

import (
	"fmt"
	"math"
	"strings"
)

// claim makes the row's id its own, and sets Key. It reports false for a
// duplicate to leave out.
func (s *Source) claim(row *Row) (bool, *fault) {
	row.Key = s.identity.keyOf(row.ID)
	first := s.ids.claim(row.Key, row.Line)
	if first == 0 {
		return true, nil
	}
	switch s.options.OnDuplicate {
	case "skip":
		return false, nil
	case "suffix":
		id := row.ID
		for n := max(2, s.ids.suffix[id]+1); ; n++ {
			row.ID, row.NumericID = fmt.Sprintf("%s-%d", id, n), false
			row.Key = s.identity.keyOf(row.ID)
			if s.ids.claim(row.Key, row.Line) == 0 {
				s.ids.remember(id, n)
				return true, nil
			}
		}
	}
	return false, &fault{-1, fmt.Sprintf("id '%s' %s", strings.Trim(quote(row.ID), `"`), s.ids.places(first, row.Line))}
}

// ids remembers where each id was first given: a 64-bit hash and a line number.
// Two ids with the same hash would count as duplicates; among ten million ids
// the chance of that is 3 in a million.
type ids struct {
	first  table
	starts []start
	lines  uint64         // of the files before
	suffix map[string]int // the last number appended to an id
}

// start is where a file begins, counting lines through all files.
type start struct {
	name string
	line uint64
}

func (d *ids) file(name string) {
	if name == "-" {
		name = "stdin"
	}
	d.starts = append(d.starts, start{name, d.lines})
}

// claim records the id with this key and returns 0, or the line, counted
// through all files, that has it already.
func (d *ids) claim(key [16]byte, line int) uint32 {
	var h uint64
	for _, b := range key[:8] {
		h = h<<8 | uint64(b)
	}
	return d.first.put(h, uint32(min(d.lines+uint64(line), math.MaxUint32)))
}

func (d *ids) remember(id string, n int) {
	if d.suffix == nil {
		d.suffix = make(map[string]int)
	}
	d.suffix[id] = n
}

// places says where an id was given first and again.
func (d *ids) places(first uint32, line int) string {
	here := d.starts[len(d.starts)-1]
	if first == math.MaxUint32 {
		return fmt.Sprintf("on line %d is a duplicate", line)
	}
	for i := len(d.starts) - 1; ; i-- {
		there := d.starts[i]
		if uint64(first) <= there.line {
			continue
		}
		at := uint64(first) - there.line
		if i == len(d.starts)-1 {
			return fmt.Sprintf("on lines %d and %d", at, line)
		}
		return fmt.Sprintf("on %s:%d and %s:%d", there.name, at, here.name, line)
	}
}
