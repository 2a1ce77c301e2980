package input

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/metehq/mete/cmd/mete/internal/template"
	"pgregory.net/rapid"
)

// tableOptions are options for a table whose first column becomes the query.
func tableOptions(format, column string) Options {
	return Options{Format: format, Template: &template.Spec{URL: `http://h/?q={{index . "` + column + `"}}`}}
}

// recordsOf returns the values of every record as Go syntax, or its error.
func recordsOf(t *testing.T, text string, delimiter byte, most int) (got []string) {
	t.Helper()
	for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
		var now []string
		rec := records{lines: &lineReader{r: r, max: most}, delimiter: delimiter}
		for {
			line, err := rec.lines.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			_, f, err := rec.read(line)
			switch {
			case err != nil:
				now = append(now, fmt.Sprintf("%d! %v", rec.first, err))
			case f != nil:
				now = append(now, fmt.Sprintf("%d:%d! %s", rec.first, f.at, f.msg))
			default:
				now = append(now, fmt.Sprintf("%d %q", rec.first, rec.row()))
			}
		}
		if got != nil && fmt.Sprint(now) != fmt.Sprint(got) {
			t.Fatalf("bytewise %s, at once %s", now, got)
		}
		got = now
	}
	return got
}

func TestRecords(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b\nc,d":                           {`1 ["a" "b"]`, `2 ["c" "d"]`},
		"a,b\r\n\"c\",\"\"\r\n":              {`1 ["a" "b"]`, `2 ["c" ""]`},
		",\n,,\r\n":                          {`1 ["" ""]`, `2 ["" "" ""]`},
		"\"a\nb\r\n\n,\"\"c\",d\ne,f":        {`1 ["a\nb\r\n\n,\"c" "d"]`, `5 ["e" "f"]`},
		"\"\"\"\",\"\"\"x\"\"\"\n":           {`1 ["\"" "\"x\""]`},
		"\"a\r\",b":                          {`1 ["a\r" "b"]`},
		" a , b \t":                          {`1 [" a " " b \t"]`},
		"a\"b\nc":                            {`1:1! a quote in a field without quotes: put the field in quotes and double the quote, as in "5"" pipe"`, `2 ["c"]`},
		"x, \"a\"\nc":                        {`1:3! a quote in a field without quotes: put the field in quotes and double the quote, as in "5"" pipe"`, `2 ["c"]`},
		"\"a\"b\nc":                          {`1:3! text after a closing quote: a quote inside a field is doubled, as in "5"" pipe"`, `2 ["c"]`},
		"x\n\"a,\nb\n":                       {`1 ["x"]`, `2:0! the quote that opens here is never closed`},
		"a\rb\n":                             {`1:1! a carriage return inside a line: save with LF or CRLF line ends, and put fields with line breaks in quotes`},
		"caf\xe9,b\nc":                       {`1:3! not UTF-8 (byte 0xe9): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8`, `2 ["c"]`},
		"a\x00b\n":                           {`1:1! a NUL byte: if this is UTF-16, save it as UTF-8`},
		"\"0123456789\n0123456789\",x\na":    {`1! row too long (25 > 20 bytes): raise run.max_line in mete.yaml, or close its quote`, `3 ["a"]`},
		"\"0123456789\n0123\n567\"\"\n\"\na": {`1! row too long (24 > 20 bytes): raise run.max_line in mete.yaml, or close its quote`, `5 ["a"]`},
		"\"0123456789\n0123456789\nx\n":      {`1! a quote in the row is never closed (24 > 20 bytes)`},
		"\"a\n" + strings.Repeat("x", 30) + "\n\"\nb\n":  {`1! row too long (35 > 20 bytes): raise run.max_line in mete.yaml, or close its quote`, `4 ["b"]`},
		"\"a\n" + strings.Repeat("x", 30) + "\"\nb\n":    {`1! row too long (34 > 20 bytes): raise run.max_line in mete.yaml, or close its quote`, `3 ["b"]`},
		"\"a\n" + strings.Repeat("\"\"", 15) + "\"\nb\n": {`1! row too long (34 > 20 bytes): raise run.max_line in mete.yaml, or close its quote`, `3 ["b"]`},
	} {
		if got := recordsOf(t, text, ',', 20+80*len(text)*b2i(!strings.Contains(want[0], "20 bytes"))); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q\n gives %s\n  want %s", text, got, want)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A read error inside a quote is the end, not a row.
func TestRecordsReadError(t *testing.T) {
	in := io.MultiReader(strings.NewReader("a\n1\n\"2\n"), iotest.ErrReader(io.ErrClosedPipe))
	s, err := Open(nil, in, tableOptions("csv", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if row, err := s.Next(); err != nil || row.Target != "/?q=1" {
		t.Fatal(row, err)
	}
	for range 2 {
		if row, err := s.Next(); row != nil || err == nil || err.Error() != "stdin: io: read/write on closed pipe" {
			t.Errorf("%v, %v", row, err)
		}
	}
}

// quoteField writes a field as RFC 4180 has it, without quotes where they may
// be missing and by chance.
func quoteField(v string, delimiter byte, always bool) string {
	if always || v == "" || strings.ContainsAny(v, "\"\r\n"+string(delimiter)) {
		return `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
	}
	return v
}

// Any table reads back byte for byte, with line ends of either kind inside
// quotes (golang/go#21201), and at the physical lines where its rows begin.
func TestRecordsRoundTrip(t *testing.T) {
	field := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("\"\"\",;\t\r\n\n aé日\u2028\ufeff")), rapid.Rune().Filter(func(r rune) bool { return r != 0 })))
	rapid.Check(t, func(t *rapid.T) {
		delimiter := rapid.SampledFrom([]byte(",;\t|\x1f")).Draw(t, "delimiter")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		width := rapid.IntRange(1, 4).Draw(t, "width")
		rows := rapid.SliceOfN(rapid.SliceOfN(field, width, width), 1, 8).Draw(t, "rows")
		var text strings.Builder
		var lines []int
		line := 1
		for i, row := range rows {
			lines = append(lines, line)
			for j, v := range row {
				if j > 0 {
					text.WriteByte(delimiter)
				}
				q := quoteField(v, delimiter, rapid.Bool().Draw(t, "quoted"))
				text.WriteString(q)
				line += strings.Count(q, "\n")
			}
			if i < len(rows)-1 || rapid.Bool().Draw(t, "last line end") {
				text.WriteString(end)
			}
			line++
		}
		in := text.String()
		if strings.HasPrefix(in, "\ufeff") {
			return // a mark, not a character of the field
		}
		rec := records{lines: &lineReader{r: strings.NewReader(in), max: 1 << 20}, delimiter: delimiter}
		for i, row := range rows {
			next, err := rec.lines.next()
			if err != nil {
				t.Fatalf("%q: row %d: %v", in, i, err)
			}
			_, f, err := rec.read(next)
			if f != nil || err != nil {
				t.Fatalf("%q: row %d: %v %v", in, i, f, err)
			}
			if got := rec.row(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", row) || rec.first != lines[i] {
				t.Fatalf("%q: row %d at %d: %q, want %q at %d", in, i, rec.first, got, row, lines[i])
			}
		}
		if _, err := rec.lines.next(); err != io.EOF {
			t.Fatalf("%q: more rows: %v", in, err)
		}
	})
}

// Where encoding/csv and this reader both take a table they agree, carriage
// returns aside; and whatever the bytes, no row is lost without a word.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "a\n\"x\ny\"\n", "a,a\n", "\"a\"b\n", "a\n\"", "\xef\xbb\xbfa\n1", "a;b\n1;2", "sep=;\na;b\n1;2", "a\r\n1\r\n\r\n2", "a\n\x00\n\xff\n", "id\nx\nx\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Format: "csv", NoHeader: true, MaxLine: 64, Template: &template.Spec{URL: "http://h/{{.c1}}?{{.c1}}"}}
		s, err := Open(nil, strings.NewReader(text), o)
		if err != nil {
			t.Fatal(err)
		}
		var rows []*Row
		clean := true
		for row, err := range s.Rows() {
			if bad, ok := err.(*RowError); ok {
				clean = false
				told(t, bad, text)
				continue
			}
			if err != nil {
				clean = false
				break
			}
			sendable(t, row)
			rows = append(rows, row)
		}
		if !clean || strings.HasPrefix(text, "sep=") {
			return
		}
		slow := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		want, err := slow.ReadAll()
		if err != nil {
			t.Fatalf("%q: encoding/csv: %v", text, err)
		}
		if len(want) != len(rows) {
			t.Fatalf("%q: %d rows, want %d", text, len(rows), len(want))
		}
		for i, row := range rows {
			got := strings.ReplaceAll(row.URL.Path[1:], "\r\n", "\n")
			if got != want[i][0] {
				t.Fatalf("%q: row %d is %q, want %q", text, i, got, want[i][0])
			}
		}
	})
}
