package record_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Lines have no length at which they are cut or end the file: golang/go#26431,
// cockroachdb/copyist#2.
func TestReader(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	text := "a\n\n" + long + "\nlast"
	for name, r := range map[string]*record.Reader{
		"plain": record.NewReader(strings.NewReader(text)),
		"half":  record.NewReader(iotest.HalfReader(strings.NewReader(text))),
		"eof":   record.NewReader(iotest.DataErrReader(strings.NewReader(text))),
	} {
		for i, want := range []struct {
			line   string
			offset int64
			whole  bool
		}{{"a\n", 0, true}, {"\n", 2, true}, {long + "\n", 3, true}, {"last", int64(4 + len(long)), false}} {
			if !r.Next() || string(r.Line()) != want.line || r.Offset() != want.offset || r.Whole() != want.whole || r.Number() != int64(i+1) {
				t.Fatalf("%s: line %d: %.20q at %d", name, i+1, r.Line(), r.Offset())
			}
		}
		if r.Next() || r.Err() != nil || r.Offset() != int64(len(text)) || r.Next() {
			t.Errorf("%s: end: %v at %d", name, r.Err(), r.Offset())
		}
	}
	r := record.NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("ab\n"))))
	if r.Next() || !errors.Is(r.Err(), iotest.ErrTimeout) {
		t.Errorf("error is lost: %q, %v", r.Line(), r.Err())
	}
	r = record.NewReader(iotest.ErrReader(nil))
	if r.Next() || r.Err() == nil {
		t.Error("a reader that never gets on must end")
	}
}
