package results

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func recordLine(id, body string) string {
	return string(record.AppendJSON(nil, &record.Record{ID: id, Key: record.SumID(id), Body: []byte(body), Run: "r"}))
}

// run writes files named 0, 1, … and calls do on them.
func run(t testing.TB, dir string, do func(*Input, io.Writer) error, files ...string) (out, notices string, err error) {
	t.Helper()
	var o, n bytes.Buffer
	in := &Input{Notices: &n}
	for i, content := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		in.Paths = append(in.Paths, path)
	}
	err = do(in, &o)
	return o.String(), strings.ReplaceAll(n.String(), dir+"/", ""), err
}

func everything(in *Input, w io.Writer) error { return Filter(in, Condition{JQ: "true"}, w) }

func order(by By) func(*Input, io.Writer) error {
	return func(in *Input, w io.Writer) error { return Order(in, by, w) }
}

func join(in *Input, w io.Writer) error { return Join(in, "", w) }

func TestFold(t *testing.T) {
	a1, b1, c1 := recordLine("a", "1"), recordLine("b", "[1]"), recordLine("c", "1")
	a2, c2, a3 := recordLine("a", `{"x": 2}`), recordLine("c", strings.Repeat("long ", 50000)), recordLine("a", "3")
	for _, tt := range []struct{ name, in, want, notice string }{
		{"empty", "", "", ""},
		{"nothing to fold", a1 + b1, a1 + b1, ""},
		{"last wins, first place stays", a1 + b1 + a2 + c1 + c2 + a3, a3 + b1 + c2, ""},
		{"torn tail", a1 + b1 + a2[:50], a1 + b1, "left out 50 bytes of a torn record"},
		{"torn tail with a line feed", a1 + b1 + a2[:50] + "\n", a1 + b1, "left out 51 bytes"},
		{"only a torn record", a1[:50], "", "left out 50 bytes"},
		{"last line feed is missing", a1 + b1 + strings.TrimSuffix(a2, "\n"), a2 + b1, ""},
		{"blank lines", a1 + "\n \r\n" + b1 + "\n", a1 + b1, ""},
		{"NUL bytes where data never reached the disk", a1 + b1 + strings.Repeat("\x00", 70), a1 + b1, "left out 70 bytes"},
		{"other shapes of the same row", `{"id":"a","n":1}` + "\n" + `{"n":2, "id":"\u0061"}` + "\n" + b1, `{"n":2, "id":"\u0061"}` + "\n" + b1, ""},
		{"a number is not cut or rounded", "{\"id\":12345678901234567890,\"x\":1}\n{\"id\":12345678901234567891}\n{\"id\":12345678901234567890,\"x\":2.0}\n",
			"{\"id\":12345678901234567890,\"x\":2.0}\n{\"id\":12345678901234567891}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, notices, err := run(t, t.TempDir(), Fold, tt.in)
			if err != nil || out != tt.want {
				t.Errorf("%v\ngot  %.300q\nwant %.300q", err, out, tt.want)
			}
			if (tt.notice == "") != (notices == "") || !strings.Contains(notices, tt.notice) {
				t.Errorf("notices %q, want %q", notices, tt.notice)
			}
		})
	}
}

// Two rows whose ids have the same sum, or whose derived ids are the same by
// chance, stay two rows.
func TestFoldTellsRowsApart(t *testing.T) {
	r := record.Record{ID: "0123456789ab-0", Key: 1, Run: "r"}
	one := string(record.AppendJSON(nil, &r))
	r.Key = 2
	two := string(record.AppendJSON(nil, &r))
	if out, _, err := run(t, t.TempDir(), Fold, one+two+one); err != nil || out != one+two {
		t.Errorf("%v, %s", err, out)
	}
}

// lines draws a result file with repeated ids, and maybe lines of other shapes.
func lines(t *rapid.T, label string) []string {
	var out []string
	for n, id := range rapid.SliceOfN(rapid.IntRange(0, 100), 0, 200).Draw(t, label) {
		line := fmt.Sprintf("{\"id\":%d,\"line\":%d,\"file\":\"f%d\",\"at\":\"2026-03-10T12:00:%02d.000Z\",\"n\":%d,\"pad\":\"%s\"}\n",
			id, id*7%50, id%3, id*13%60, n, strings.Repeat("x", id*id%6000))
		out = append(out, line)
	}
	return out
}

// fold is Fold as one would write it without a thought for memory.
func fold(lines []string) []string {
	last, order := map[string]string{}, []string{}
	for _, l := range lines {
		id, _, _ := strings.Cut(l, ",")
		if _, ok := last[id]; !ok {
			order = append(order, id)
		}
		last[id] = l
	}
	for i, id := range order {
		order[i] = last[id]
	}
	return order
}

func TestFoldAndJoinAgainstMap(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		a, b := lines(t, "a"), lines(t, "b")
		want := strings.Join(fold(a), "")
		once, _, err := run(tb(t), dir, Fold, strings.Join(a, ""))
		if err != nil || once != want {
			t.Fatalf("%v: %d bytes, want %d", err, len(once), len(want))
		}
		if twice, _, err := run(tb(t), dir, Fold, once); err != nil || twice != once {
			t.Fatalf("folding again changes it: %v", err)
		}
		both, _, err := run(tb(t), dir, join, strings.Join(a, ""), strings.Join(b, ""))
		if want := strings.Join(fold(append(a, b...)), ""); err != nil || both != want {
			t.Fatalf("join: %v: %d bytes, want %d", err, len(both), len(want))
		}
	})
}

// rapidTB gives run what it needs of a testing.TB.
type rapidTB struct {
	testing.TB
	t *rapid.T
}

func (r rapidTB) Helper()           {}
func (r rapidTB) Fatal(args ...any) { r.t.Fatal(args...) }

func tb(t *rapid.T) testing.TB { return rapidTB{t: t} }

// What order writes are the lines that fold writes, in another order.
func TestOrderIsPermutation(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		a := lines(t, "a")
		by := rapid.SampledFrom([]By{ByInput, ByID, ByAt}).Draw(t, "by")
		out, _, err := run(tb(t), dir, order(by), strings.Join(a, ""))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Collect(strings.Lines(out))
		want := fold(a)
		slices.Sort(want)
		sorted := slices.Sorted(slices.Values(got))
		if !slices.Equal(sorted, want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		if again, _, err := run(tb(t), dir, order(by), out); err != nil || by != ByInput && again != out {
			t.Fatalf("ordering again changes it: %v", err)
		}
	})
}

func TestOrder(t *testing.T) {
	a := `{"id":"x10","file":"b.jsonl","line":1,"at":"2026-03-10T12:00:02Z"}` + "\n"
	b := `{"id":10,"file":"a.jsonl","line":2,"at":"2026-03-10T12:00:01Z"}` + "\n"
	c := `{"id":-9,"file":"a.jsonl","line":10,"at":"2026-03-10T12:00:01.5Z"}` + "\n"
	d := `{"id":"-10","at":null}` + "\n"
	e := `{"id":"x1","file":"a.jsonl","line":9,"at":"2026-03-10T12:00:04Z"}` + "\n"
	f := `{"id":99999999999999999999,"file":"b.jsonl","line":1}` + "\n"
	in := a + b + c + d + e + f
	for _, tt := range []struct {
		by   By
		want string
	}{
		{ByInput, b + e + c + a + f + d},
		{ByID, d + c + b + f + e + a},
		{ByAt, b + c + a + e + d + f},
	} {
		if out, _, err := run(t, t.TempDir(), order(tt.by), in); err != nil || out != tt.want {
			t.Errorf("%s: %v\n%s", tt.by, err, out)
		}
	}
	for in, want := range map[string]string{
		`{"id":1,"line":"x"}`: `0:1: field "line"`,
		`{"id":1,"at":"x"}`:   `0:1: field "at": not a time as in`,
	} {
		_, _, err := run(t, t.TempDir(), order(ByInput), in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, _, err := run(t, t.TempDir(), order("size"), in); err == nil || err.Error() != `--by "size": want input, id or at` {
		t.Error(err)
	}
}

func TestFilterTrueIsIdentity(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(lines(t, "in"), "")
		if out, _, err := run(tb(t), dir, everything, in); err != nil || out != in {
			t.Fatalf("%v: %d bytes, want %d", err, len(out), len(in))
		}
	})
}

// Compressed files and pipes are read by everything, also in another order.
func TestCompressed(t *testing.T) {
	a, b := recordLine("a", "1"), recordLine("b", strings.Repeat("long ", 100_000))
	in := b + a
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	io.WriteString(g, in)
	g.Close()
	z, _ := zstd.NewWriter(&zs)
	io.WriteString(z, in)
	z.Close()
	for name, data := range map[string]string{
		"plain": in, "gzip": gz.String(), "zstd": zs.String(), "two gzip members": gz.String() + gz.String(),
	} {
		want := in
		if strings.HasPrefix(name, "two") {
			want += in
		}
		if out, _, err := run(t, t.TempDir(), everything, data); err != nil || out != want {
			t.Errorf("%s: %v, %d bytes", name, err, len(out))
		}
		if out, _, err := run(t, t.TempDir(), order(ByID), data); err != nil || out != a+b {
			t.Errorf("%s: order: %v, %d bytes", name, err, len(out))
		}
		var out bytes.Buffer
		err := Order(&Input{Paths: []string{"-"}, Stdin: strings.NewReader(data), Notices: io.Discard}, ByID, &out)
		if err != nil || out.String() != a+b {
			t.Errorf("%s: order of standard input: %v, %d bytes", name, err, out.Len())
		}
	}
	for name, data := range map[string]string{
		"0: the gzip data are cut off":  gz.String()[:gz.Len()-30],
		"0: damaged gzip data":          "\x1f\x8b\x08\x00" + strings.Repeat("\xff", 99),
		"0: the zstd data are cut off":  zs.String()[:zs.Len()-10],
		"0: damaged zstd data":          zs.String()[:4] + strings.Repeat("\xff", 50),
		"0: damaged gzip data: gzip: i": "\x1f\x8bx" + strings.Repeat("x", 50),
	} {
		for _, do := range []func(*Input, io.Writer) error{everything, Fold} {
			if _, _, err := run(t, t.TempDir(), do, data); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want %q", err, name)
			}
		}
	}
}

func TestSkipBad(t *testing.T) {
	a, b := recordLine("a", "1"), recordLine("b", "1")
	in := "nonsense\n" + a + a[:40] + "\n" + b + b[:9]
	for name, do := range map[string]func(*Input, io.Writer) error{"fold": Fold, "filter": everything, "order": order(ByID)} {
		out, notices, err := run(t, t.TempDir(), func(in *Input, w io.Writer) error {
			in.SkipBad = true
			return do(in, w)
		}, in)
		if err != nil || out != a+b {
			t.Errorf("%s: %v, %q", name, err, out)
		}
		want := "mete: 0: left out 9 bytes of a torn record at the end\nmete: left out 2 bad lines; the first: 0:1: not a record of mete: column 1: want {\n"
		if notices != want {
			t.Errorf("%s: %q", name, notices)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestDiskFull(t *testing.T) {
	for name, do := range map[string]func(*Input, io.Writer) error{
		"fold": Fold, "filter": everything, "order": order(ByAt), "join": join,
		"csv": func(in *Input, w io.Writer) error { return WriteCSV(in, CSV{}, w) },
	} {
		_, _, err := run(t, t.TempDir(), func(in *Input, _ io.Writer) error { return do(in, brokenWriter{}) }, recordLine("a", "1"))
		if _, ok := errors.AsType[*FileError](err); !ok || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJoinInput(t *testing.T) {
	dir := t.TempDir()
	rows := filepath.Join(dir, "rows")
	with := func(in *Input, w io.Writer) error { return Join(in, rows, w) }
	a, b, c := recordLine("a", `{"x":1}`), `{"id":7}`+"\r\n", recordLine("c", "1")
	for _, tt := range []struct{ rows, want, notice, err string }{
		{
			rows:   `{"id":"a","big":12345678901234567890, "s":"\u0041"}` + "\n\n" + `{"id":7}` + "\n" + `{"id":"c"}`,
			want:   strings.TrimSuffix(a, "}\n") + `,"input":{"id":"a","big":12345678901234567890, "s":"\u0041"}}` + "\n" + `{"id":7,"input":{"id":7}}` + "\n" + strings.TrimSuffix(c, "}\n") + `,"input":{"id":"c"}}` + "\n",
			notice: "mete: joined 3 records of 1 file, 3 ids\n",
		},
		{
			rows:   `{"id":"a","n":1}` + "\n" + `{"id":"a","n":2}` + "\n" + `{"url":"/"}` + "\n" + `{"id":"z"}` + "\n",
			want:   strings.TrimSuffix(a, "}\n") + `,"input":{"id":"a","n":2}}` + "\n" + `{"id":7,"input":null}` + "\n" + strings.TrimSuffix(c, "}\n") + `,"input":null}` + "\n",
			notice: "mete: rows: 1 row without an id cannot be joined\nmete: rows: 1 id comes again; the last row with an id counts\nmete: joined 3 records of 1 file, 3 ids\nmete: rows: 2 records without a row here, 1 row without a record\n",
		},
		{rows: `{"url":"/"}` + "\n", err: `rows: no row has an "id"`},
		{rows: `{"id":1}` + "\n" + `{"id":`, err: "rows:2: want a JSON object: "},
		{rows: `id,name` + "\n", err: "rows:1: want a JSON object: "},
		{rows: `{"id":1}}` + "\n", err: "rows:1: want a JSON object: "},
	} {
		if err := os.WriteFile(rows, []byte(tt.rows), 0o666); err != nil {
			t.Fatal(err)
		}
		out, notices, err := run(t, dir, with, a+b+c)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %s", err, tt.err)
			}
			continue
		}
		if err != nil || out != tt.want || notices != tt.notice {
			t.Errorf("%v\n%s\nwant\n%s\n%s", err, out, tt.want, notices)
		}
	}
	if _, _, err := run(t, dir, with, `{"id":1,"input":2}`); err == nil {
		t.Error("a second input was taken")
	}
}
