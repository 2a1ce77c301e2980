package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out.jsonl")

	j, _ := journal.Open(out, journal.Options{})
	written, _ := j.Append(record.AppendJSON(nil, &record.Record{ID: "a", Key: record.SumID("a"), Hash: 7 << 12, OK: true}))
	_ = written.Wait(context.Background()) // now the row may give up its permit
	_ = j.Close()

	_, err := journal.Open(out, journal.Options{})
	fmt.Println(strings.TrimPrefix(err.Error(), dir+"/"))

	j, _ = journal.Open(out, journal.Options{Resume: true})
	defer j.Close()
	fmt.Println(j.Done(record.SumID("a"), 7<<12) == journal.Done, j.Done(record.SumID("b"), 7<<12) == journal.Missing)
	// Output:
	// out.jsonl exists: add --resume to continue it, or --overwrite to start again and lose what it holds
	// true true
}

func lineOf(id string, hash uint64, ok bool) []byte {
	return record.AppendJSON(nil, &record.Record{ID: id, Key: record.SumID(id), Hash: hash << 12, OK: ok, Body: []byte(`{"é":"` + id + `"}`), Run: "r"})
}

func open(t testing.TB, path string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t testing.TB, j *journal.Journal, lines ...[]byte) {
	t.Helper()
	for _, line := range lines {
		b, err := j.Append(line)
		if err == nil {
			err = b.Wait(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(t testing.TB, path string, parts ...[]byte) {
	t.Helper()
	if err := os.WriteFile(path, slices.Concat(parts...), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Killed at any byte, the file is continued without a broken line, without a
// lost row and without a row asked twice: NousResearch/hermes-agent#112575,
// microsoft/TypeAgent#2769.
func TestTornAtEveryByte(t *testing.T) {
	var lines [][]byte
	for _, id := range []string{"a", "b", "c"} { // few fields, so that there are few bytes to cut at
		lines = append(lines, fmt.Appendf(nil, `{"v":1,"id":"%s","key":"%016x","hash":"0000000000000100","ok":true,"body":{"é":{}},"body_encoding":"json","run":"r"}`+"\n", id, record.SumID(id)))
	}
	all := slices.Concat(lines...)
	path := filepath.Join(t.TempDir(), "out.jsonl")
	for cut := range len(all) + 1 {
		os.RemoveAll(path + ".mete")
		write(t, path, all[:cut])
		j, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		end := 0
		for i, id := range []string{"a", "b", "c"} {
			end += len(lines[i])
			want := journal.Missing
			if cut >= end-1 { // all but the line feed
				want = journal.Done
			}
			if got := j.Done(record.SumID(id), 1<<12); got != want {
				t.Fatalf("cut at %d: row %s is %d, want %d", cut, id, got, want)
			}
			if want == journal.Missing {
				add(t, j, lines[i])
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != string(all) {
			t.Fatalf("cut at %d: file is now\n%s", cut, got)
		}
		torn := cut > 0 && all[cut-1] != '\n'
		if told := strings.Contains(fmt.Sprint(j.Notices()), path+":"); told != torn {
			t.Fatalf("cut at %d: notices %q", cut, j.Notices())
		}
	}
}

// The three tails of NousResearch/hermes-agent#112575, in records that hold
// next to nothing.
func TestTornTails(t *testing.T) {
	for _, tt := range []struct {
		name, tail string
		two        journal.State
		want       string
	}{
		{"torn", `{"id":2,"sta`, journal.Missing, "dropped 12 bytes"},
		{"only the line feed is missing", `{"id":2,"status":200}`, journal.Done, "ended the last record"},
		{"half a character", "{\"id\":2,\"status\":200,\"x\":\"\xe2\x82", journal.Missing, "dropped 28 bytes"},
		{"torn, with a line feed", "{\"id\":2,\"sta\n", journal.Missing, "dropped 13 bytes"},
		{"NULs of a power cut", "\x00\x00\x00", journal.Missing, "dropped 3 bytes"},
		{"NULs and a line feed", "{\"id\":2,\x00\x00\x00}\n", journal.Missing, "dropped 13 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.jsonl")
			write(t, path, []byte("{\"id\":1,\"status\":200}\n"+tt.tail))
			j := open(t, path, journal.Options{Resume: true})
			if got := j.Done(record.SumID("2"), 99<<12); got != tt.two {
				t.Errorf("row 2 is %d", got)
			}
			if j.Done(record.SumID("1"), 99<<12) != journal.Done {
				t.Error("row 1 is lost")
			}
			if !strings.Contains(fmt.Sprint(j.Notices()), tt.want) {
				t.Errorf("notices %q", j.Notices())
			}
			for _, id := range []string{"2", "3", "4"} {
				if j.Done(record.SumID(id), 1<<12) == journal.Missing {
					add(t, j, lineOf(id, 1, true))
				}
			}
			j.Close()
			lines := record.NewReader(strings.NewReader(read(t, path)))
			for n := 1; lines.Next(); n++ {
				if h, err := record.FullHead(lines.Line()); err != nil || string(h.ID) != fmt.Sprint(n) || n > 4 {
					t.Errorf("line %d: %s, %v", n, lines.Line(), err)
				}
			}
		})
	}
}

func TestBadLineInside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	first, half := lineOf("a", 1, true), lineOf("b", 1, true)
	write(t, path, first, half[:40], lineOf("c", 1, true), lineOf("d", 1, true), []byte(`{"v":1,`))
	before := read(t, path)
	_, err := journal.Open(path, journal.Options{Resume: true})
	bad, ok := errors.AsType[*journal.BadLineError](err)
	if !ok || bad.Line != 2 || bad.Offset != int64(len(first)) || !strings.HasPrefix(err.Error(), path+":2: ") {
		t.Errorf("%v", err)
	}
	if read(t, path) != before {
		t.Error("the file was changed")
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	diary := filepath.Join(dir, "diary.txt")
	write(t, path, lineOf("a", 1, true))
	write(t, diary, []byte("Dear diary"))
	for _, tt := range []struct {
		path string
		o    journal.Options
		want string
	}{
		{path, journal.Options{}, "exists: add --resume to continue it, or --overwrite"},
		{path, journal.Options{Resume: true, Overwrite: true}, "exclude each other"},
		{path, journal.Options{Resume: true, Fsync: "2s"}, `fsync "2s": want 1s, always or never`},
		{diary, journal.Options{Resume: true}, "diary.txt is not a result file"},
		{dir, journal.Options{}, "is a folder"},
		{os.DevNull, journal.Options{Resume: true}, "not a regular file"},
	} {
		before, _ := os.ReadFile(tt.path)
		j, err := journal.Open(tt.path, tt.o)
		if err == nil {
			j.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want %q", tt.path, tt.o, err, tt.want)
		}
		if after, _ := os.ReadFile(tt.path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", tt.path)
		}
	}
	if _, err := os.Stat(path + ".mete"); err == nil {
		t.Error("a refused output got a side folder")
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	link := filepath.Join(dir, "link.jsonl")
	j := open(t, path, journal.Options{})
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, o := range []journal.Options{{}, {Resume: true}, {Overwrite: true}} {
		for _, p := range []string{path, link} {
			_, err := journal.Open(p, o)
			if locked, ok := errors.AsType[*journal.LockedError](err); !ok || locked.PID != os.Getpid() {
				t.Errorf("%s %+v: %v", p, o, err)
			}
		}
	}
	add(t, j, lineOf("a", 1, true))
	j.Close()
	j = open(t, link, journal.Options{Resume: true})
	if j.Done(record.SumID("a"), 1<<12) != journal.Done {
		t.Error("row is lost")
	}
}

// A row is known by its key, wherever it stands in the input and in the file,
// and by its request: NousResearch/hermes-agent#95322.
func TestStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	write(t, path, lineOf("a", 1, false), lineOf("b", 1, true), []byte(" \r\n"), lineOf("c", 1, false), lineOf("a", 1, true),
		[]byte("{\"id\":\"d\"}\n"))
	before := read(t, path)
	j := open(t, path, journal.Options{Resume: true})
	for _, tt := range []struct {
		id   string
		hash uint64
		want journal.State
	}{
		{"a", 1, journal.Done}, {"b", 1, journal.Done}, {"b", 2, journal.Changed}, {"c", 1, journal.Failed},
		{"c", 2, journal.Changed}, {"d", 5, journal.Done}, {"x", 1, journal.Missing},
	} {
		if got := j.Done(record.SumID(tt.id), tt.hash<<12); got != tt.want {
			t.Errorf("%s/%d: %d, want %d", tt.id, tt.hash, got, tt.want)
		}
	}
	if got, want := j.Resumed(), (journal.Resumed{Records: 5, Rows: 4, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	j.Close()
	if read(t, path) != before {
		t.Error("resuming and adding nothing changed the file")
	}
}

func TestOverwriteAndFresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	j := open(t, path, journal.Options{Resume: true, Run: "1"}) // nothing there: start
	add(t, j, lineOf("a", 1, true))
	body, err := j.NewBody()
	if err != nil {
		t.Fatal(err)
	}
	body.Write([]byte("old"))
	old, err := body.Commit()
	if err != nil {
		t.Fatal(err)
	}
	salt := j.Manifest().Salt
	j.Close()
	j = open(t, path, journal.Options{Overwrite: true, Run: "2"})
	if j.Done(record.SumID("a"), 1<<12) != journal.Missing || j.Manifest().Salt == salt || j.Previous() != nil {
		t.Error("something of the old run is left")
	}
	j.Close()
	if got := read(t, path); got != "" {
		t.Errorf("file holds %q", got)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), old)); err == nil {
		t.Error("the old body is left")
	}
}

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	path, rows := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "rows.csv")
	write(t, rows, bytes.Repeat([]byte("0123456789"), 20e3))
	manifest := func(print string) journal.Manifest {
		in, err := journal.ReadInput(rows)
		if err != nil {
			t.Fatal(err)
		}
		return journal.Manifest{Mete: "1.0", Inputs: []journal.Input{in}, Fingerprints: map[string]string{"limits": print, "template": "x"}}
	}
	j := open(t, path, journal.Options{Manifest: manifest("50/s"), Run: "1"})
	first := j.Manifest()
	if len(first.Salt) != 16 {
		t.Errorf("salt %q", first.Salt)
	}
	j.Close()

	now := time.Now().Add(time.Hour)
	os.Chtimes(rows, now, now)
	j = open(t, path, journal.Options{Resume: true, Manifest: manifest("50/s"), Run: "2"})
	m := j.Manifest()
	if m.Salt != first.Salt || len(m.Runs) != 2 || m.Runs[1].ID != "2" {
		t.Errorf("%+v", m)
	}
	if d := m.Differences(j.Previous()); len(d) != 0 {
		t.Errorf("differences %q", d)
	}
	j.Close()

	write(t, rows, []byte("short"))
	j = open(t, path, journal.Options{Resume: true, Manifest: manifest("60/s"), Run: "3"})
	m = j.Manifest()
	if got, want := fmt.Sprint(m.Differences(j.Previous())), "["+rows+": size 5, was 200000 limits changed]"; got != want {
		t.Errorf("differences %s, want %s", got, want)
	}
	j.Close()

	// The results are the truth; a manifest lost or broken stops nobody.
	for _, broken := range []string{"", "{"} {
		write(t, path+".mete/manifest.json", []byte(broken))
		j = open(t, path, journal.Options{Resume: true})
		if len(j.Notices()) != 1 || j.Manifest().Salt == first.Salt {
			t.Errorf("notices %q", j.Notices())
		}
		j.Close()
	}
}

func TestBodies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	j := open(t, path, journal.Options{})
	var names []string
	for range 2 {
		b, err := j.NewBody()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(b, "hello ")
		fmt.Fprint(b, "world")
		name, err := b.Commit()
		if err != nil || b.Size() != 11 {
			t.Fatal(err)
		}
		if _, err := b.Commit(); !errors.Is(err, os.ErrClosed) || b.Discard() != nil {
			t.Error("a body can be finished twice")
		}
		names = append(names, name)
	}
	const want = "out.jsonl.mete/bodies/b9/4d/b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
	if names[0] != want || names[1] != want || read(t, filepath.Join(dir, want)) != "hello world" {
		t.Errorf("names %q", names)
	}
	b, _ := j.NewBody()
	b.Write([]byte("x"))
	if err := b.Discard(); err != nil {
		t.Error(err)
	}
	write(t, path+".mete/bodies/tmp-LEFT", []byte("of a killed process"))
	write(t, path+".mete/tmp-LEFT", []byte("too"))
	j.Close()
	open(t, path, journal.Options{Resume: true}).Close()
	filepath.WalkDir(path+".mete", func(name string, _ fs.DirEntry, _ error) error {
		if strings.Contains(name, "tmp-") {
			t.Errorf("%s is left", name)
		}
		return nil
	})
	stream := journal.Stream(new(bytes.Buffer))
	defer stream.Close()
	if _, err := stream.NewBody(); err != journal.ErrNoBodies {
		t.Errorf("a stream takes a body: %v", err)
	}
}

// The reader of standard output goes away: aws/aws-cli#10538,
// Backblaze/B2_Command_Line_Tool#1071.
func TestReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	j := journal.Stream(w)
	defer j.Close()
	add(t, j, lineOf("a", 1, true))
	r.Close()
	b, err := j.Append(lineOf("b", 1, true))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); !errors.Is(err, journal.ErrReaderGone) {
		t.Errorf("Wait: %v", err)
	}
	<-j.Trouble()
	if _, err := j.Append(lineOf("c", 1, true)); err != journal.ErrReaderGone {
		t.Errorf("Append: %v", err)
	}
	for _, err := range []error{j.Err(), j.Flush(t.Context()), j.Close()} {
		if err != journal.ErrReaderGone {
			t.Error(err)
		}
	}
	if j.Pending() != 0 {
		t.Errorf("%d pending", j.Pending())
	}
}

func TestPipeAsOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() { got <- read(t, path) }()
	j := open(t, path, journal.Options{})
	line := lineOf("a", 1, true)
	add(t, j, line)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if s := <-got; s != string(line) {
		t.Errorf("reader got %q", s)
	}
	if _, err := os.Stat(path + ".mete"); err == nil {
		t.Error("a pipe got a side folder")
	}
}

func TestAppendWantsOneLine(t *testing.T) {
	j := journal.Stream(new(bytes.Buffer))
	for _, s := range []string{"", "\n", "{}", "{}\n{}\n", "{}\n{}"} {
		if _, err := j.Append([]byte(s)); err == nil {
			t.Errorf("%q passes", s)
		}
	}
	j.Close()
	if _, err := j.Append([]byte("{}\n")); err != journal.ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}

// Killed or cut off from power at any point, any number of times: what was
// forced to disk is never asked again, what was written is not asked again
// after a kill, and in the end each row has exactly one record.
// NousResearch/hermes-agent#297, maziyarpanahi/openmed#1433.
func TestExactlyOnce(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		const rows = 8
		id := func(i int) string { return fmt.Sprintf("row %d", i) }
		has := map[int]bool{} // the model: rows with a record
		for finished := false; !finished; {
			j, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
			if err != nil {
				t.Fatal(err)
			}
			var todo []int
			for i := range rows {
				state := j.Done(record.SumID(id(i)), uint64(i+1)<<12)
				if (state == journal.Done) != has[i] {
					t.Fatalf("row %d: %v, but has a record: %v", i, state, has[i])
				}
				if state != journal.Done {
					todo = append(todo, i)
				}
			}
			todo = rapid.Permutation(todo).Draw(t, "order")
			todo = todo[:rapid.IntRange(0, len(todo)).Draw(t, "rows")]
			var last *journal.Batch
			for _, i := range todo {
				if last, err = j.Append(lineOf(id(i), uint64(i+1), true)); err != nil {
					t.Fatal(err)
				}
				has[i] = true
			}
			if last != nil {
				if err := last.Wait(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			switch rapid.SampledFrom([]string{"end", "kill", "power cut"}).Draw(t, "fate") {
			case "kill": // in the middle of one more write
				if i := rapid.IntRange(0, rows-1).Draw(t, "row"); !has[i] {
					line := lineOf(id(i), uint64(i+1), true)
					cut := rapid.IntRange(0, len(line)).Draw(t, "cut")
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					f.Write(line[:cut])
					f.Close()
					has[i] = cut >= len(line)-1
				}
			case "power cut":
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				cut := rapid.IntRange(0, len(whole)).Draw(t, "cut")
				os.Truncate(path, int64(cut))
				clear(has)
				lines := record.NewReader(bytes.NewReader(whole[:cut]))
				for lines.Next() {
					if h, err := record.FullHead(lines.Line()); err == nil {
						has[int(h.Hash>>12)-1] = true
					}
				}
			}
			finished = len(has) == rows && !slices.Contains(slices.Collect(func(yield func(bool) bool) {
				for i := range rows {
					if !yield(has[i]) {
						return
					}
				}
			}), false)
		}
		open, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		if got := open.Resumed(); got != (journal.Resumed{Records: rows, Rows: rows}) {
			t.Fatalf("%+v", got)
		}
	})
}
