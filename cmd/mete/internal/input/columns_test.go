package input

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// A table of awkward place names arrives byte for byte in the URL, in the JSON
// body and in meta.
func TestPlaces(t *testing.T) {
	file, err := os.ReadFile("testdata/places.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := parsePlaces(t, file)
	s, err := Open([]string{"testdata/places.csv"}, nil, Options{Template: &template.Spec{
		URL:  `https://h/v1/{{.name}}/x?q={{index . "full address"}}`,
		JSON: `{"name":{{.name}},"note":"<{{index . "full address"}}>","n":{{num .id}}}`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := drain(t, s)
	// Ids with leading zeros are no JSON numbers.
	if len(bad) != len(want) || bad[0].Error() != `testdata/places.csv:2: --json: num: "0000" is not a number` {
		t.Fatalf("%d rows, %d bad, the first: %v", len(rows), len(bad), bad[0])
	}
	s, err = Open([]string{"testdata/places.csv"}, nil, Options{Template: &template.Spec{
		URL:  `https://h/v1/{{.name}}/x?q={{index . "full address"}}`,
		JSON: `{"name":{{.name}},"note":"<{{index . "full address"}}>"}`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	rows, bad = drain(t, s)
	if len(bad) > 0 || len(rows) != len(want) || len(rows) < 300 {
		t.Fatalf("%d rows, want %d; %v", len(rows), len(want), bad)
	}
	for i, row := range rows {
		w := want[i]
		u, err := url.Parse("https://h" + row.Target)
		if err != nil {
			t.Fatal(err)
		}
		if u.Path != "/v1/"+w[1]+"/x" || u.Query().Get("q") != w[3] || row.ID != w[0] || row.Method != "POST" || row.ContentType != "application/json" {
			t.Errorf("row %d: %s %s %q", i, row.ID, row.Method, row.Target)
		}
		var body struct{ Name, Note string }
		if err := json.Unmarshal(row.Body, &body); err != nil || body.Name != w[1] || body.Note != "<"+w[3]+">" {
			t.Errorf("row %d: %s %v", i, row.Body, err)
		}
		var meta map[string]string
		if err := json.Unmarshal(row.Meta, &meta); err != nil || meta["id"] != w[0] || meta["name"] != w[1] || meta["country"] != w[2] || meta["full address"] != w[3] {
			t.Errorf("row %d: %s %v", i, row.Meta, err)
		}
		if head := `{"id":"` + w[0] + `","name":`; !bytes.HasPrefix(row.Meta, []byte(head)) {
			t.Errorf("row %d: columns in another order: %s", i, row.Meta)
		}
	}
}

// parsePlaces reads a table with encoding/csv, keeping carriage returns
// by another character in their place.
func parsePlaces(t *testing.T, file []byte) [][]string {
	t.Helper()
	const stand = "\u2401"
	all, err := csv.NewReader(bytes.NewReader(bytes.ReplaceAll(file, []byte("\r"), []byte(stand)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], stand, "\r")
		}
	}
	return all[1:]
}

func targets(rows []*Row) (all []string) {
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%d%s", r.Line, r.Target))
	}
	return all
}

func TestTables(t *testing.T) {
	semicolon := tableOptions("csv", "b")
	semicolon.Delimiter = ';'
	bare := tableOptions("csv", "c2")
	bare.NoHeader = true
	pipe := tableOptions("tsv", "b")
	pipe.Delimiter = '|'
	for _, c := range []struct {
		text string
		o    Options
		want string
	}{
		{"a,b\n1,x\n", tableOptions("csv", "b"), "[2/?q=x]"},
		{"\xEF\xBB\xBFa,b\r\n\r\n1,x\r\n\r\n2,y", tableOptions("csv", "a"), "[3/?q=1 5/?q=2]"},
		{"\xEF\xBB\xBF\"a\",b\n1,x", tableOptions("csv", "a"), "[2/?q=1]"},
		{"\n\n a , b\n 1,x", tableOptions("csv", "a"), "[4/?q=%201]"},
		{"a\tb\n1,\tx y", tableOptions("tsv", "b"), "[2/?q=x%20y]"},
		{"a;b\n1;x,y", semicolon, "[2/?q=x%2Cy]"},
		{"sep=;\r\na;b\r\n1;x", tableOptions("csv", "b"), "[3/?q=x]"},
		{"sep=;\na;b\n1;x", semicolon, "[3/?q=x]"},
		{"a|b\n1|x", pipe, "[2/?q=x]"},
		{"1,x\n007,1.50\n", bare, "[1/?q=x 2/?q=1.50]"},
		{"1,\"x\ny\"\n2,z\n", bare, "[1/?q=x%0Ay 3/?q=z]"},
		{"a,b\n\"x\n\n\",1\n2,2", tableOptions("csv", "b"), "[2/?q=1 5/?q=2]"},
		{"a\n\"\"\n", tableOptions("csv", "a"), "[2/?q=]"},
		{"a,b\n", tableOptions("csv", "b"), "[]"},
		{"", tableOptions("csv", "b"), "[]"},
		{"a\n\"# no comment\"\n#x", tableOptions("csv", "a"), "[2/?q=%23%20no%20comment 3/?q=%23x]"},
		{" one \r\n\n\t\n#two\nhttp://x/{", tableOptions("lines", "line"), "[1/?q=%20one%20 4/?q=%23two 5/?q=http%3A%2F%2Fx%2F%7B]"},
		{" one \n", tableOptions("auto", "line"), "[1/?q=%20one%20]"},
		{"[x]\n\"\"", tableOptions("auto", "line"), "[1/?q=%5Bx%5D 2/?q=%22%22]"},
		{` {"a":"é\n","b":12345678901234567890,"c":[{"a":1}]}` + "\n" + `{"b":-1.50e+2}`, tableOptions("auto", "b"), "[1/?q=12345678901234567890 2/?q=-1.50e%2B2]"},
		{`{"a b":true}`, tableOptions("jsonl", "a b"), "[1/?q=true]"},
	} {
		rows, bad := read(t, c.text, c.o)
		if len(bad) > 0 || fmt.Sprint(targets(rows)) != c.want {
			t.Errorf("%q\n gives %v %v\n  want %s", c.text, targets(rows), bad, c.want)
		}
	}
}

// fatal returns the error that ends the reading.
func fatal(t *testing.T, text string, o Options) error {
	t.Helper()
	s, err := Open(nil, strings.NewReader(text), o)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		_, err := s.Next()
		if bad, ok := err.(*RowError); ok {
			t.Errorf("%q: a bad row: %v", text, bad)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if _, again := s.Next(); again != err {
				t.Errorf("%q: then %v", text, again)
			}
			return err
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	short := tableOptions("csv", "a")
	short.MaxLine = 10
	for text, want := range map[string]string{
		"a,b,a\n1,2,3":         `stdin:1:5: the header has "a" twice, in columns 1 and 3: rename one`,
		"a,Name,name\n":        `stdin:1:8: columns 2 and 3, "Name" and "name", differ in case only: rename one`,
		"a,,b\n":               "stdin:1:3: column 2 of the header has no name: name it, or read the row as data with --no-header",
		"a,\" \"\n":            "stdin:1:3: column 2 of the header has no name: name it, or read the row as data with --no-header",
		"a,b,\n":               "stdin:1:5: column 3 of the header has no name: name it, or read the row as data with --no-header",
		"a;b\n1;2":             "stdin:1:2: the table looks as if it is separated by ';': use --delimiter ';'",
		"a\tb\n1\t2":           `stdin:1:2: the table looks as if it is separated by '\t': use --delimiter '\t'`,
		"\n\na\"b\n":           `stdin:3:2: a quote in a field without quotes: put the field in quotes and double the quote, as in "5"" pipe"`,
		"a,\"x\n\ny,a\n":       "stdin:1:3: the quote that opens here is never closed",
		"\"a\nb\",\"c\nc\",,":  "stdin:3:4: column 3 of the header has no name: name it, or read the row as data with --no-header",
		"stra\xdfe,a\n":        "stdin:1:5: not UTF-8 (byte 0xdf): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8",
		"b,c\n1,2":             `--url:1:23: unknown column "a": there are b, c`,
		"\xFF\xFEa\x00,\x00":   "stdin: saved as Unicode text: save it as UTF-8, or convert it with iconv -f UTF-16 -t UTF-8",
		"a\x00,\x00b\x00\n":    "stdin:1:2: a NUL byte: if this is UTF-16, save it as UTF-8",
		"D\xD0\xCF\x11\xE0\n1": "stdin:1:2: not UTF-8 (byte 0xd0): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8",
		"\xD0\xCF\x11\xE0\n1":  "stdin: this is an old Excel workbook: save it as CSV UTF-8",
	} {
		if err := fatal(t, text, tableOptions("csv", "a")); err == nil || err.Error() != want {
			t.Errorf("%q\n gives %v\n  want %s", text, err, want)
		}
	}
	for _, text := range []string{"aaaaaaaaaaaaaaaaaaaa\n1", "\"aaaaa\naaaaaa\n", "\"aaaaaaaaaaaaaaaaaaaa\n1"} {
		err := fatal(t, text, short)
		if e, ok := err.(*FileError); !ok || !strings.HasPrefix(e.Error(), "stdin:1: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	err := fatal(t, "id,b,b\n", tableOptions("csv", "id"))
	if e, ok := err.(*FileError); !ok || e.Detail() != "     1 | id,b,b\n              ^" {
		t.Errorf("%v", err)
	}
	if err := fatal(t, "a line", tableOptions("auto", "name")); err == nil || err.Error() != `--url:1:23: unknown column "name": the only one is line (stdin is read as plain lines: say --input-format csv for a table)` {
		t.Error(err)
	}
}

func TestTableRowErrors(t *testing.T) {
	text := "id,name,n\n1,a\n2,b,2,3,4\n\"x\ny\",c,3\n4,d\"e,4\n5,caf\xe9,5\n6,f,x\n,g,7\n" + strings.Repeat("8", 257) + ",h,8\n4,i,9\n4,j,10\nlast,k,11\n"
	o := Options{Format: "csv", Template: &template.Spec{URL: "http://h/{{.name}}", JSON: "{{num .n}}"}}
	rows, bad := read(t, text, o)
	if got := fmt.Sprint(targets(rows)); got != "[4/c 11/i 13/k]" {
		t.Error(got)
	}
	want := []string{
		`stdin:2:3: 2 fields where the header has 3: "n" is missing`,
		`stdin:3:7: 5 fields where the header has 3: put a field that holds the delimiter in quotes`,
		`stdin:6:4: a quote in a field without quotes: put the field in quotes and double the quote, as in "5"" pipe"`,
		`stdin:7:6: not UTF-8 (byte 0xe9): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8`,
		`stdin:8: --json: num: "x" is not a number`,
		`stdin:9:1: id is empty`,
		`stdin:10:1: id has 257 bytes, more than 256`,
		`stdin:12: id '4' on lines 11 and 12`,
	}
	for i, e := range bad {
		if i >= len(want) || e.Error() != want[i] {
			t.Errorf("%v", e)
		}
	}
	if len(bad) != len(want) {
		t.Errorf("%d bad rows, want %d", len(bad), len(want))
	}
	if bad[4].ID != "6" {
		t.Errorf("the bad row %v has id %q", bad[4], bad[4].ID)
	}
	// Places inside a record of several lines.
	_, bad = read(t, "a,b\n\"1\n2\n3\",x,y\n", tableOptions("csv", "a"))
	if len(bad) != 1 || bad[0].Error() != "stdin:4:6: 3 fields where the header has 2: put a field that holds the delimiter in quotes" || bad[0].Detail() != "     4 | 3\",x,y\n              ^" {
		t.Errorf("%v\n%s", bad, bad[0].Detail())
	}
}

// A field of many lines that is too long is one bad row, takes bounded memory
// and the next row is read (golang/go#26431 for lines).
func TestGiantField(t *testing.T) {
	const most = 1 << 20
	long := strings.Repeat("0123456789abcde\n", 1<<20) // 16 MiB of lines
	in := io.MultiReader(strings.NewReader("a,b\n1,\""), strings.NewReader(long), strings.NewReader("\"\n2,x\n3,\""), zeros(16<<20), strings.NewReader("\n\"\"\"\n4,y\n"))
	o := tableOptions("csv", "a")
	o.MaxLine = most
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := Open(nil, in, o)
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := drain(t, s)
	runtime.ReadMemStats(&after)
	if got := fmt.Sprint(targets(rows)); got != "[1048579/?q=2 1048582/?q=4]" {
		t.Error(got)
	}
	if len(bad) != 2 || bad[0].Error() != "stdin:2: row too long (16777220 > 1048576 bytes): raise run.max_line in mete.yaml, or close its quote" || bad[1].Line != 1048580 {
		t.Error(bad)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*most { // all there ever was, of 32 MiB read
		t.Errorf("%d bytes allocated for rows of at most %d", grown, most)
	}
}

func TestObjectErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"nmae":"x"}`:          `stdin:1:1: the object has no field "name" (did you mean "nmae"?)`,
		`{}`:                    `stdin:1:1: the object has no field "name"`,
		`{"zzzzzz":1}`:          `stdin:1:1: the object has no field "name": it has zzzzzz`,
		`{"name":null}`:         `stdin:1:9: "name" is null: a template takes strings, numbers and booleans`,
		`{"name":{}}`:           `stdin:1:9: "name" is an object: a template takes strings, numbers and booleans`,
		`{"name":"x","name":1}`: `stdin:1:13: field "name" is given twice`,
		`{"name":"x"} x`:        `stdin:1:14: more text after the object: one object per line`,
		`["name"]`:              `stdin:1:1: expected an object, found '['`,
		`{"name":"x","id":1.5}`: `stdin:1:18: id is not a whole number: quote it`,
		`{"name":"x","id":""}`:  `stdin:1:18: id is empty`,
		"{\"name\":\"\xe9\"}":   "stdin:1:10: not UTF-8 (byte 0xe9): save the file as UTF-8, or convert it with iconv -f WINDOWS-1252 -t UTF-8",
	} {
		_, bad := read(t, text, tableOptions("jsonl", "name"))
		if len(bad) != 1 || bad[0].Error() != want {
			t.Errorf("%s\n gives %v\n  want %s", text, bad, want)
		}
	}
	row := one(t, ` {"name": "a&b", "id":7, "x":[1.0]} `, tableOptions("jsonl", "name"))
	if row.ID != "7" || !row.IDGiven || string(row.Meta) != `{"name": "a&b", "id":7, "x":[1.0]}` || row.Target != "/?q=a%26b" {
		t.Errorf("%+v", row)
	}
	var e *template.Error
	if err := fatal(t, `{}`, Options{Format: "jsonl", Template: &template.Spec{URL: "{{.x"}}); !errors.As(err, &e) {
		t.Error(err)
	}
}
