package input

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read returns all good rows and all bad ones of a text given on stdin.
func read(t *testing.T, text string, o Options) ([]*Row, []*RowError) {
	t.Helper()
	s, err := Open(nil, strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, s)
}

func drain(t *testing.T, s *Source) (rows []*Row, bad []*RowError) {
	t.Helper()
	defer s.Close()
	for row, err := range s.Rows() {
		var e *RowError
		switch {
		case errors.As(err, &e):
			if row != nil {
				t.Errorf("a row comes with error %v", err)
			}
			bad = append(bad, e)
		case err != nil:
			t.Fatal(err)
		default:
			rows = append(rows, row)
		}
	}
	if _, err := s.Next(); err != io.EOF {
		t.Errorf("after the end: %v, want io.EOF", err)
	}
	return rows, bad
}

// one reads the only row of a text.
func one(t *testing.T, text string, o Options) *Row {
	t.Helper()
	rows, bad := read(t, text, o)
	if len(bad) > 0 {
		t.Fatalf("%.200s: %v\n%s", text, bad[0], bad[0].Detail())
	}
	if len(rows) != 1 {
		t.Fatalf("%.200s: %d rows, want 1", text, len(rows))
	}
	return rows[0]
}

// write makes a file in a folder of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
