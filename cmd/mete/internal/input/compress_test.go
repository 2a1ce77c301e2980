package input

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// pack compresses text as a program would.
func pack(t testing.TB, how, text string) string {
	t.Helper()
	var b bytes.Buffer
	switch how {
	case "gzip":
		w := gzip.NewWriter(&b)
		w.Write([]byte(text))
		w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
		w.Close()
	}
	return b.String()
}

// Every format may be compressed, whatever the file is called, also in several
// parts as pigz, logs and cat make them.
func TestCompressed(t *testing.T) {
	for _, how := range []string{"gzip", "zstd"} {
		for text, o := range map[string]Options{
			"http://h/?q=1\nhttp://h/?q=2\n":                           {},
			"{\"url\":\"http://h/?q=1\"}\n{\"url\":\"http://h/?q=2\"}": {},
			"\xEF\xBB\xBFa,b\r\n1,x\r\n2,y\r\n":                        tableOptions("csv", "a"),
			"1\n2":                                                     tableOptions("auto", "line"),
			"a\tb\n1\t\"x\n\"\n2\ty\n" + strings.Repeat("\n", 3*firstBuffer): tableOptions("tsv", "a"),
		} {
			half := len(text) / 2
			for _, packed := range []string{pack(t, how, text), pack(t, how, text[:half]) + pack(t, how, text[half:])} {
				s, err := Open(nil, iotest.OneByteReader(strings.NewReader(packed)), o)
				if err != nil {
					t.Fatal(err)
				}
				rows, bad := drain(t, s)
				if len(bad) > 0 || len(rows) != 2 || !strings.HasSuffix(rows[0].Target, "?q=1") || !strings.HasSuffix(rows[1].Target, "?q=2") {
					t.Errorf("%s of %.20q: %v %v", how, text, targets(rows), bad)
				}
				if s.Bytes() != int64(len(packed)) {
					t.Errorf("%s of %.20q: %d bytes, want %d", how, text, s.Bytes(), len(packed))
				}
			}
		}
		// By name, and not to be read twice.
		for name, text := range map[string]string{"a.csv": "a,b\n1,2\n", "a.tsv": "a\tb\n1\t2\n", "A.CSV": "a,b\n1,2\n", "a.ndjson": `{"a":1}`} {
			path := write(t, name+map[string]string{"gzip": ".gz", "zstd": ".zst"}[how], pack(t, how, text))
			s, err := Open([]string{path}, nil, tableOptions("auto", "a"))
			if err != nil {
				t.Fatal(err)
			}
			rows, bad := drain(t, s)
			if len(rows) != 1 || len(bad) > 0 || rows[0].Target != "/?q=1" || Scannable([]string{path}) {
				t.Errorf("%s: %v %v", path, rows, bad)
			}
			if _, err := Scan(t.Context(), []string{path}, tableOptions("auto", "a")); err == nil {
				t.Errorf("%s is scanned", path)
			}
		}
	}
}

// An archive cut off anywhere is an error, never a shorter input
// (pingcap/tidb#68065, mxmlnkn/rapidgzip#71).
func TestTruncated(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "http://h/%d\n", i*i*7919)
	}
	for _, how := range []string{"gzip", "zstd"} {
		packed := pack(t, how, text.String())
		for n := longestMagic; n < len(packed); n++ {
			s, err := Open(nil, strings.NewReader(packed[:n]), Options{Format: "urls"})
			if err != nil {
				t.Fatal(err)
			}
			var last error
			for _, err := range s.Rows() {
				last = err
			}
			if want := "stdin: the " + how + " data is cut off: copy or download it again"; last == nil || last.Error() != want {
				t.Fatalf("%s, %d of %d bytes: %v", how, n, len(packed), last)
			}
		}
		for i := range len(packed) {
			b := []byte(packed)
			b[i] ^= 0x55
			s, err := Open(nil, bytes.NewReader(b), Options{Format: "urls"})
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for row, err := range s.Rows() {
				if _, bad := err.(*RowError); row != nil || bad {
					rows++
				}
				if err != nil && !strings.HasPrefix(err.Error(), "stdin: the "+how+" data is ") && !strings.HasPrefix(err.Error(), "stdin:") {
					t.Fatalf("%s, byte %d: %v", how, i, err)
				}
			}
			if rows > 300 {
				t.Fatalf("%s, byte %d: %d rows", how, i, rows)
			}
		}
	}
	twice := pack(t, "gzip", pack(t, "zstd", "http://h"))
	if err := fatal(t, twice, Options{}); err == nil || err.Error() != "stdin: compressed twice: unpack it once before" {
		t.Error(err)
	}
	if err := fatal(t, pack(t, "gzip", "\xFF\xFEa\x00"), Options{}); err == nil || !strings.HasPrefix(err.Error(), "stdin: saved as Unicode text") {
		t.Error(err)
	}
	if err := fatal(t, pack(t, "gzip", ""), Options{}); err != nil {
		t.Error(err)
	}
}

// A reader's own error is not blamed on the archive.
func TestPackedReadError(t *testing.T) {
	packed := pack(t, "gzip", strings.Repeat("http://h/1\n", 1000))
	in := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(packed)))
	s, err := Open(nil, in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err == nil || err.Error() != "stdin: timeout" {
		t.Error(err)
	}
}

// Archives of the real programs, where they are installed.
func TestRealPrograms(t *testing.T) {
	for program, args := range map[string][]string{"gzip": {"-c"}, "zstd": {"-19", "--long=27", "-c"}} {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		cmd := exec.Command(program, args...)
		cmd.Stdin, _ = os.Open("testdata/places.csv")
		packed, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		rows, bad := read(t, string(packed), tableOptions("csv", "name"))
		if len(rows) != 309 || len(bad) > 0 {
			t.Errorf("%s: %d rows, %v", program, len(rows), bad)
		}
	}
}
