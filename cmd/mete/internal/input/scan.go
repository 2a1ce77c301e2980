package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Summary is what one pass over the input found.
type Summary struct {
	Rows    int64 // good rows: what a run sends
	Skipped int64 // duplicates left out (OnDuplicate "skip")
	Bytes   int64 // of input
	// Costs sums the costs of the rows by unit: what Options.Check found out, or
	// what they give themselves, where "" is the default unit. Costed counts the
	// rows that have one, Cheapest and Dearest are of the rows that do.
	Costs             map[string]int64
	Costed            int64
	Cheapest, Dearest map[string]int64
	// Columns are the names of the columns of the first table, or nil.
	Columns []string
	// First are the first rows, at most MaxFirst.
	First []*Row
	// DuplicateRequests counts the rows whose request an earlier row has made,
	// in method, URL, headers and body. Rows with an id of their own and rows
	// without are counted apart.
	DuplicateRequests int64
	// Errors are the first bad rows, at most MaxErrors; ErrorCount counts all.
	Errors     []*RowError
	ErrorCount int64
}

// MaxErrors is how many bad rows a Summary keeps.
const MaxErrors = 20

// MaxFirst is how many rows a Summary keeps.
const MaxFirst = 3

// Scannable reports whether every path is a regular file and not compressed,
// which can be read twice. Other input is checked as it is read instead.
func Scannable(paths []string) bool {
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == "-" || err != nil || !info.Mode().IsRegular() || packedFile(path) {
			return false
		}
	}
	return len(paths) > 0
}

// Scan reads all rows once, before the first request: it checks every row,
// counts them, adds up costs and finds duplicates. Bad rows are in the
// Summary; the error is for input that cannot be read, or ctx ending.
func Scan(ctx context.Context, paths []string, o Options) (Summary, error) {
	var sum Summary
	if !Scannable(paths) {
		return sum, errors.New("only regular files can be scanned ahead")
	}
	s, err := Open(paths, nil, o)
	if err != nil {
		return sum, err
	}
	defer s.Close()
	return s.Sum(ctx)
}

// Sum reads the rows that are left and sums them up. Bad rows are in the
// Summary; the error is for input that cannot be read, or ctx ending.
func (s *Source) Sum(ctx context.Context) (Summary, error) {
	var sum Summary
	var seen requests
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		row, err := s.Next()
		sum.Bytes, sum.Skipped = s.Bytes(), s.Skipped()
		if sum.Columns == nil {
			sum.Columns = s.Columns()
		}
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			bad, ok := err.(*RowError)
			if !ok {
				return sum, err
			}
			sum.ErrorCount++
			if len(sum.Errors) < MaxErrors {
				sum.Errors = append(sum.Errors, bad)
			}
			continue
		}
		sum.Rows++
		if row.Estimate != nil {
			sum.add(row.Estimate)
		} else {
			sum.add(row.Cost)
		}
		if row.occurrence > 1 || row.IDGiven && seen.add(row.Hash) {
			sum.DuplicateRequests++
		}
		if len(sum.First) < MaxFirst {
			sum.First = append(sum.First, row)
		} else {
			s.spare = row
		}
	}
}

// add adds a row's costs; a sum that does not fit stays at the largest number.
func (s *Summary) add(cost map[string]int64) {
	if len(cost) == 0 {
		return
	}
	s.Costed++
	if s.Costs == nil {
		s.Costs, s.Cheapest, s.Dearest = make(map[string]int64), make(map[string]int64), make(map[string]int64)
	}
	for unit, n := range cost {
		if least, ok := s.Cheapest[unit]; !ok || n < least {
			s.Cheapest[unit] = n
		}
		s.Dearest[unit] = max(s.Dearest[unit], n)
		if sum := s.Costs[unit]; sum > math.MaxInt64-n {
			s.Costs[unit] = math.MaxInt64
		} else {
			s.Costs[unit] = sum + n
		}
	}
}

// Err returns nil if every row is good, else one error that says how many are
// not.
func (s *Summary) Err() error {
	switch s.ErrorCount {
	case 0:
		return nil
	case 1:
		return s.Errors[0]
	}
	return fmt.Errorf("%d bad rows, the first: %w", s.ErrorCount, s.Errors[0])
}
