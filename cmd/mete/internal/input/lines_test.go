package input

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// Long lines neither end the input nor loop (golang/go#26431,
// cockroachdb/copyist#2, mightyguava/jl#3).
func TestLongLine(t *testing.T) {
	body := strings.Repeat("x", 70<<10)
	rows, bad := read(t, `{"url":"http://h/1"}`+"\n"+`{"url":"http://h/2","body":"`+body+`"}`+"\n"+`{"url":"http://h/3"}`, Options{})
	if len(rows) != 3 || len(bad) != 0 || string(rows[1].Body) != body {
		t.Fatalf("%d rows, %v", len(rows), bad)
	}
}

// zeros yields n bytes without holding them.
func zeros(n int64) io.Reader { return io.LimitReader(endless('x'), n) }

type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestTooLongLine(t *testing.T) {
	const length, most = 20 << 20, 8 << 20
	in := io.MultiReader(strings.NewReader("http://h/1\n"), zeros(length), strings.NewReader("\nhttp://h/3\n"), zeros(length))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := Open(nil, in, Options{Format: "urls", MaxLine: most})
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := drain(t, s)
	runtime.ReadMemStats(&after)
	if len(rows) != 2 || rows[1].Line != 3 || rows[1].Target != "/3" {
		t.Errorf("rows %v", rows)
	}
	if len(bad) != 2 || bad[0].Error() != "stdin:2: line too long (20971520 > 8388608 bytes): raise run.max_line in mete.yaml" || bad[1].Line != 4 {
		t.Error(bad)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*most {
		t.Errorf("%d bytes allocated for lines of at most %d", grown, most)
	}
}

// The maximum holds to the byte, wherever reads happen to end.
func TestMaxLine(t *testing.T) {
	for length := 1; length < 40; length++ {
		for most := 1; most < 40; most++ {
			text := strings.Repeat("a", length) + "\nb\n" + strings.Repeat("c", length)
			for name, r := range map[string]io.Reader{
				"at once": strings.NewReader(text), "bytewise": iotest.OneByteReader(strings.NewReader(text)), "with EOF": iotest.DataErrReader(strings.NewReader(text)),
			} {
				l := &lineReader{r: r, max: most}
				var got []string
				for {
					line, err := l.next()
					if err == io.EOF {
						break
					}
					if err != nil {
						got = append(got, err.Error())
						continue
					}
					got = append(got, string(line))
				}
				want := []string{strings.Repeat("a", length), "b", strings.Repeat("c", length)}
				if length > most {
					want[0] = fmt.Sprintf("line too long (%d > %d bytes): raise run.max_line in mete.yaml", length, most)
					want[2] = want[0]
				}
				if fmt.Sprint(got) != fmt.Sprint(want) || l.line != 3 || l.bytes != int64(len(text)) {
					t.Fatalf("length %d, most %d, %s: %q, want %q (line %d, %d bytes)", length, most, name, got, want, l.line, l.bytes)
				}
			}
		}
	}
}

// A row cut off by a read error is not a row.
func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, most := range []int{100, 12} {
		in := io.MultiReader(strings.NewReader("http://h/1\nhttp://h/200"), iotest.ErrReader(broken))
		s, err := Open(nil, in, Options{MaxLine: most})
		if err != nil {
			t.Fatal(err)
		}
		if row, err := s.Next(); err != nil || row.Target != "/1" {
			t.Fatal(row, err)
		}
		for range 2 {
			if row, err := s.Next(); !errors.Is(err, broken) || row != nil || err.Error() != "stdin: disk on fire" {
				t.Errorf("got %v, %v", row, err)
			}
		}
		var bad *RowError
		n := 0
		for _, err := range s.Rows() {
			if n++; errors.As(err, &bad) || n > 1 {
				t.Errorf("iteration goes on with %v", err)
			}
		}
	}
	s, err := Open(nil, stuck{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestNotText(t *testing.T) {
	for text, want := range map[string]string{
		"\xFF\xFEh\x00":          "stdin: saved as Unicode text: save it as UTF-8",
		"\xFE\xFF\x00h":          "stdin: saved as Unicode text: save it as UTF-8",
		"\x1F\x8B\x08\x00abc":    "stdin: the gzip data is cut off: copy or download it again",
		"\x28\xB5\x2F\xFD\x00ab": "stdin: the zstd data is cut off: copy or download it again",
		"PK\x03\x04\x14\x00":     "stdin: this is a zip file or an Excel workbook: unpack it, or save it as CSV UTF-8",
		"BZh91AY&SY":             "stdin: this is bzip2: pipe it through bunzip2",
	} {
		s, err := Open(nil, iotest.OneByteReader(strings.NewReader(text)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
