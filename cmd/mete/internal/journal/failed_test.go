package journal_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Whatever was appended in which order, over resumes too: what fails is the last
// record of each row, if that is not ok.
func TestWriteFailed(t *testing.T) {
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		files++
		path := filepath.Join(dir, fmt.Sprint(files))
		var written [][]byte
		last := map[uint64]int{} // index of the last record of each key
		good := map[uint64]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			j, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 20).Draw(t, "records") {
				key := rapid.Uint64Range(1, 6).Draw(t, "key")
				ok := rapid.Bool().Draw(t, "ok")
				line := record.AppendJSON(nil, &record.Record{
					ID: fmt.Sprint(key), Key: key, OK: ok, Body: []byte(rapid.StringN(0, 9, -1).Draw(t, "body")), Line: int64(len(written)),
				})
				if _, err := j.Append(line); err != nil {
					t.Fatal(err)
				}
				last[key], good[key] = len(written), ok
				written = append(written, line)
			}
			if err := j.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want, got bytes.Buffer
			for i, line := range written {
				if h, _ := record.ReadHead(line); last[h.Key] == i && !good[h.Key] {
					want.Write(line)
				}
			}
			if err := j.WriteFailed(&got); err != nil {
				t.Fatal(err)
			}
			if got.String() != want.String() {
				t.Fatalf("failed:\n%s\nwant:\n%s", &got, &want)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A record may be longer than any buffer, and a stream has none to give.
func TestWriteFailedLarge(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "out"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	line := record.AppendJSON(nil, &record.Record{ID: "a", Key: 7, Body: bytes.Repeat([]byte("x"), 1<<20)})
	for _, l := range [][]byte{line, record.AppendJSON(nil, &record.Record{ID: "b", Key: 8, OK: true})} {
		if _, err := j.Append(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := j.WriteFailed(&got); err != nil || !slices.Equal(got.Bytes(), line) {
		t.Errorf("%d bytes, %v; want %d", got.Len(), err, len(line))
	}
	s := journal.Stream(&got)
	defer s.Close()
	before := got.Len()
	if err := s.WriteFailed(&got); err != nil || got.Len() != before {
		t.Errorf("of a stream: %d bytes, %v", got.Len()-before, err)
	}
}
