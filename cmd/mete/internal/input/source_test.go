package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFormats(t *testing.T) {
	for _, o := range []Options{{Format: "xml"}, {OnDuplicate: "last"}, {MaxLine: -1}} {
		if _, err := Open(nil, strings.NewReader(""), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	for text, want := range map[string]int{"": 0, "\n \r\n": 0, "\xEF\xBB\xBF": 0, "# only\n#comments": 0, "http://h": 1, " \n\n {\"url\":\"http://h\"}": 1, "#c\n\nhttp://h": 1} {
		if rows, bad := read(t, text, Options{}); len(rows) != want || len(bad) != 0 {
			t.Errorf("%q: %d rows, %v", text, len(rows), bad)
		}
	}
	// The format told for one line is not the next file's.
	a, b := write(t, "a", "http://h/a\n"), write(t, "b", `{"url":"http://h/b"}`)
	s, err := Open([]string{a, "-", b}, strings.NewReader("http://h/in"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := drain(t, s)
	if len(bad) > 0 || len(rows) != 3 || rows[0].File != a || rows[1].File != "stdin" || rows[2].File != b || rows[2].Line != 1 {
		t.Errorf("%v %v", rows, bad)
	}
	if got, want := s.Bytes(), int64(11+11+20); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestOpenErrors(t *testing.T) {
	for name, paths := range map[string][]string{"missing": {filepath.Join(t.TempDir(), "no")}, "folder": {t.TempDir()}, "twice": {"-", "-"}} {
		if _, err := Open(paths, strings.NewReader(""), Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Open(nil, nil, Options{}); err == nil {
		t.Error("no stdin: no error")
	}
	// A file that goes away between Open and its turn.
	gone := write(t, "gone", "http://h")
	s, err := Open([]string{"-", gone}, strings.NewReader("http://h"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(gone)
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Next(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

// Identity is the request, not the place: a line inserted at the top changes
// no other row (NousResearch/hermes-agent#95322).
func TestIdentity(t *testing.T) {
	ids := func(text string) (ids []string) {
		rows, bad := read(t, text, Options{})
		if len(bad) > 0 {
			t.Fatal(bad[0])
		}
		keys := map[[16]byte]bool{}
		for _, r := range rows {
			if keys[r.Key] {
				t.Errorf("key of %s is used twice", r.ID)
			}
			keys[r.Key] = true
			ids = append(ids, r.ID)
		}
		return ids
	}
	before := ids("http://h/a\nhttp://h/b\nhttp://h/a\nhttp://h/d\n")
	after := ids("http://h/x\nhttp://h/a\nhttp://h/b\nhttp://h/a\nhttp://h/d\n")
	if fmt.Sprint(before) != fmt.Sprint(after[1:]) {
		t.Errorf("ids moved: %v, %v", before, after)
	}
	if !strings.HasSuffix(before[2], "-2") || strings.TrimSuffix(before[2], "2") != strings.TrimSuffix(before[0], "1") || len(before[0]) != 14 {
		t.Errorf("ids %v", before)
	}
	jsonl := ids(`{"url":"http://h/a"}` + "\n" + `{"method":"get","url":"http://h/b","lane":"x","timeout":"1s","meta":1,"cost":2}`)
	if fmt.Sprint(jsonl) != fmt.Sprint(before[:2]) {
		t.Errorf("the same requests as JSON: %v, want %v", jsonl, before[:2])
	}

	base := `{"id":"a","url":"http://h/a","headers":{"x":"1","authorization":"k1"},"body":"b"}`
	hash := func(text string) [16]byte { return one(t, text, Options{}).Hash }
	for text, same := range map[string]bool{
		strings.Replace(base, "k1", "k2", 1):                      true,
		strings.Replace(base, `"a"`, `"z"`, 1):                    true,
		strings.Replace(base, `"body":"b"`, `"body":"c"`, 1):      false,
		strings.Replace(base, `,"body":"b"`, ``, 1):               false,
		strings.Replace(base, `"x":"1"`, `"x":"2"`, 1):            false,
		strings.Replace(base, `"x"`, `"y"`, 1):                    false,
		strings.Replace(base, `h/a`, `h/b`, 1):                    false,
		strings.Replace(base, `http:`, `https:`, 1):               false,
		strings.Replace(base, `"id"`, `"method":"PUT","id"`, 1):   false,
		strings.Replace(base, `"x":"1"`, `"x":"1","host":"o"`, 1): false,
	} {
		if (hash(text) == hash(base)) != same {
			t.Errorf("%s: same hash is %v, want %v", text, !same, same)
		}
	}
	// Kept results are matched by these across versions: they must not change.
	const known = "86b655ff822b-1 fde5927eafdf37727c8d5632ab9b1ccd"
	if got := fmt.Sprintf("%s %x", before[0], hash(base)); got != known {
		t.Errorf("identities changed: %s, want %s", got, known)
	}
}

func TestDuplicateIDs(t *testing.T) {
	text := `{"id":"a17","url":"http://h/1"}
{"id":"b","url":"http://h/2"}
{"id":"a17","url":"http://h/3"}
{"id":"a17-2","url":"http://h/4"}
{"id":"a17","url":"http://h/5"}
`
	_, bad := read(t, text, Options{})
	if len(bad) != 2 || bad[0].Error() != "stdin:3: id 'a17' on lines 1 and 3" || bad[1].Error() != "stdin:5: id 'a17' on lines 1 and 5" {
		t.Error(bad)
	}
	if len(bad) == 2 && (bad[0].ID == "a17" || bad[0].ID == bad[1].ID) {
		t.Errorf("bad rows take the id of a good one: %q %q", bad[0].ID, bad[1].ID)
	}
	ids := func(o string) (ids []string) {
		rows, bad := read(t, text, Options{OnDuplicate: o})
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := fmt.Sprint(ids("suffix")); got != "[a17 b a17-2 a17-2-2 a17-3]" {
		t.Errorf("suffix: %s", got)
	}
	if got := fmt.Sprint(ids("skip")); got != "[a17 b a17-2]" {
		t.Errorf("skip: %s", got)
	}
	if _, bad := read(t, `{"id":17,"url":"http://h"}`+"\n"+`{"id":"17","url":"http://h"}`, Options{}); len(bad) != 1 {
		t.Error("17 and \"17\" are the same id")
	}
	a, b := write(t, "a.jsonl", "\n"+`{"id":"x","url":"http://h"}`), write(t, "b.jsonl", "\n\n\n"+`{"id":"x","url":"http://h"}`)
	s, err := Open([]string{a, b}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, bad = drain(t, s)
	if want := fmt.Sprintf("%s:4: id 'x' on %s:2 and %s:4", b, a, b); len(bad) != 1 || bad[0].Error() != want {
		t.Errorf("%v, want %s", bad, want)
	}
}

func TestBadRowHasID(t *testing.T) {
	_, bad := read(t, `{"id":"a","url":"ftp://h"}`+"\n"+`{"url":"ftp://h"}`+"\n"+`{"url":"ftp://h"}`+"\n"+`{"id":"a","url":"ftp://h"}`, Options{})
	if len(bad) != 4 {
		t.Fatal(bad)
	}
	ids := map[string]bool{}
	for _, e := range bad {
		ids[e.ID] = true
	}
	if len(ids) != 4 || !ids["a"] {
		t.Errorf("ids of bad rows: %v", ids)
	}
}

func openFiles(t *testing.T, path string) int {
	t.Helper()
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if to, _ := os.Readlink("/proc/self/fd/" + link.Name()); to == path {
			n++
		}
	}
	return n
}

func TestCloseFreesFile(t *testing.T) {
	path := write(t, "rows", strings.Repeat("http://h/x\n", 100_000))
	s, err := Open([]string{path, path}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range s.Rows() {
		if err != nil || row.Line != 1 {
			t.Fatal(row, err)
		}
		break
	}
	if n := openFiles(t, path); n != 1 {
		t.Errorf("%d files open while reading", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := openFiles(t, path); n != 0 {
		t.Errorf("%d files open after Close", n)
	}
	if _, err := s.Next(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func mkfifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFIFO(t *testing.T) {
	path := mkfifo(t)
	if Scannable([]string{path}) {
		t.Error("a FIFO cannot be read twice")
	}
	s, err := Open([]string{path, write(t, "more", "http://h/3")}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := make(chan *Row)
	go func() {
		defer close(rows)
		for row, err := range s.Rows() {
			if err != nil {
				t.Error(err)
			}
			rows <- row
		}
	}()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// A row is read as soon as its line is there, not when a buffer is full.
	for _, target := range []string{"/1", "/2"} {
		if _, err := io.WriteString(w, "http://h"+target+"\n"); err != nil {
			t.Fatal(err)
		}
		if row := <-rows; row.Target != target || row.File != path {
			t.Errorf("%+v", row)
		}
	}
	w.Close()
	if row := <-rows; row.Target != "/3" {
		t.Errorf("%+v", row)
	}
	if _, more := <-rows; more {
		t.Error("more rows than were written")
	}
}

// A writer that comes and goes without a byte makes an empty input.
func TestFIFOEmpty(t *testing.T) {
	path := mkfifo(t)
	s, err := Open([]string{path}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := s.Next(); done <- err }()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// Close ends both waits of a FIFO: for a writer and for its bytes.
func TestFIFOClose(t *testing.T) {
	for _, writer := range []bool{false, true} {
		path := mkfifo(t)
		s, err := Open([]string{path}, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { _, err := s.Next(); done <- err }()
		if writer {
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		for openFiles(t, path) == 0 {
			time.Sleep(time.Millisecond) // real files know no virtual time
		}
		s.Close()
		if err := <-done; !errors.Is(err, os.ErrClosed) {
			t.Errorf("writer %v: %v", writer, err)
		}
	}
}
