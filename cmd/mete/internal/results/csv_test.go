package results

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func toCSV(o CSV) func(*Input, io.Writer) error {
	return func(in *Input, w io.Writer) error { return WriteCSV(in, o, w) }
}

func columns(t testing.TB, list string) []Column {
	t.Helper()
	cols, err := ParseColumns(list)
	if err != nil {
		t.Fatal(err)
	}
	return cols
}

func TestCSVCells(t *testing.T) {
	const in = `{"id":"a","body":{"big":12345678901234567890,"n":1.50e3,"t":"a\"b,\nc","x":null,"o":{"k": [1, 2]},"l":["p",{"q":"\u00e9"}],"7":"seven","a.b":"dot","":"empty","dup":1,"dup":2,"cr":"a\r\nb","eq":"=1+1","sp":" s","no":false},"meta":"text"}`
	for _, tt := range []struct{ path, want string }{
		{"id", "a"}, {"body.big", "12345678901234567890"}, {"body.n", "1.50e3"},
		{"body.t", "\"a\"\"b,\nc\""}, {"body.x", ""}, {"body.none", ""}, {"body.o", `"{""k"": [1, 2]}"`}, {"body.o.k.1", "2"},
		{"body.l.0", "p"}, {"body.l.1.q", "é"}, {"body.l.2", ""}, {"body.l.01", ""}, {"body.l.-1", ""}, {"body.7", "seven"},
		{`body."a.b"`, "dot"}, {`body.""`, "empty"}, {"body.dup", "2"}, {"body.cr", "\"a\r\nb\""},
		{"body.eq", "=1+1"}, {"body.sp", `" s"`}, {"body.no", "false"}, {"meta", "text"}, {"meta.x", ""}, {"id.x", ""},
		{`"i\u0064"`, "a"},
	} {
		cols := columns(t, tt.path+",id")
		out, _, err := run(t, t.TempDir(), toCSV(CSV{Columns: cols}), in)
		_, got, _ := strings.Cut(out, ",id\n")
		if err != nil || got != tt.want+",a\n" {
			t.Errorf("%s: %v, %q, want %q", tt.path, err, got, tt.want)
		}
	}
}

// A file with one column keeps its empty cells: a bare empty line would be
// skipped by readers (golang/go#39119).
func TestCSVOneColumn(t *testing.T) {
	in := `{"id":1,"body":{"x":""}}` + "\n" + `{"id":2}` + "\n"
	out, notices, err := run(t, t.TempDir(), toCSV(CSV{Columns: columns(t, "body.x")}), in)
	if err != nil || out != "body.x\n\"\"\n\"\"\n" || notices != "" {
		t.Errorf("%v, %q, %q", err, out, notices)
	}
}

func TestCSVDefaultColumns(t *testing.T) {
	first := `{"id":1,"ok":true,"status":200,"url":"http://a/?x=1,2","latency_ms":1.5,"meta":{"address":"x","a.b":1},"error":null}` + "\n"
	second := `{"id":"b","ok":false,"meta":{"q\"\n":2},"error":{"kind":"timeout"}}` + "\n"
	third := `{"id":3,"meta":[1]}` + "\n"
	const head = `id,ok,status,url,latency_ms,error.kind,meta,meta.address,"meta.""a.b""","meta.""q\""\n"""` + "\n"
	const want = head +
		`1,true,200,"http://a/?x=1,2",1.5,,"{""address"":""x"",""a.b"":1}",x,1,` + "\n" +
		`b,false,,,,timeout,"{""q\""\n"":2}",,,2` + "\n" +
		`3,,,,,,[1],,,` + "\n"
	out, notices, err := run(t, t.TempDir(), toCSV(CSV{}), first+second+third)
	if err != nil || out != want || notices != "" {
		t.Errorf("%v\n%s\nwant\n%s%s", err, out, want, notices)
	}
	if out, _, err := run(t, t.TempDir(), toCSV(CSV{CRLF: true}), ""); err != nil || out != "id,ok,status,url,latency_ms,error.kind\r\n" {
		t.Errorf("empty: %v, %q", err, out)
	}
	// Names that the columns bear are read again as the same paths.
	r := csv.NewReader(strings.NewReader(head))
	names, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns(t, strings.Join(names, ",")) {
		if !slices.Contains(names, c.Name) {
			t.Errorf("%q", c.Name)
		}
	}
}

func TestCSVSaysWhatIsMissing(t *testing.T) {
	var in strings.Builder
	for i := range sampleRecords {
		fmt.Fprintf(&in, "{\"id\":%d}\n", i)
	}
	in.WriteString(`{"id":"late","meta":{"x":1,"y":2}}` + "\n")
	out, notices, err := run(t, t.TempDir(), toCSV(CSV{}), in.String())
	if err != nil || !strings.HasSuffix(out, "\n999,,,,,\nlate,,,,,\n") || !strings.Contains(notices, "got no column, such as x: name the columns with --columns") {
		t.Errorf("%v, %q, %q", err, out[len(out)-20:], notices)
	}
	if _, notices, err = run(t, t.TempDir(), toCSV(CSV{Columns: columns(t, "id,statsu,meta.z")}), in.String()); err != nil || notices != "mete: no record has statsu, meta.z\n" {
		t.Errorf("%v, %q", err, notices)
	}
}

// Whatever texts a record holds, encoding/csv reads them back; it alone turns
// CR LF within a field into LF.
func TestCSVRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		type record struct {
			ID   string            `json:"id"`
			Meta map[string]string `json:"meta"`
		}
		names := rapid.SliceOfNDistinct(rapid.String(), 1, 5, rapid.ID).Draw(t, "names")
		text := rapid.OneOf(rapid.String(), rapid.StringMatching("[ \",\r\n#=\\\\.a]{0,6}"))
		var in bytes.Buffer
		var want [][]string
		var list []string
		for i, n := range names {
			if !utf8.ValidString(n) {
				names[i] = fmt.Sprint(i)
			}
			list = append(list, pathText("meta", names[i]))
		}
		e := json.NewEncoder(&in)
		for range rapid.IntRange(0, 5).Draw(t, "records") {
			r := record{ID: "x", Meta: map[string]string{}}
			var row []string
			for _, n := range names {
				r.Meta[n] = strings.ToValidUTF8(text.Draw(t, "text"), "?")
				row = append(row, strings.ReplaceAll(r.Meta[n], "\r\n", "\n"))
			}
			want = append(want, row)
			e.Encode(r)
		}
		cols, err := ParseColumns(strings.Join(list, " , "))
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := run(tb(t), dir, toCSV(CSV{Columns: cols, CRLF: rapid.Bool().Draw(t, "crlf")}), in.String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		for i, name := range list {
			if strings.ReplaceAll(got[0][i], "\r\n", "\n") != strings.ReplaceAll(name, "\r\n", "\n") {
				t.Fatalf("column %q, want %q", got[0][i], name)
			}
		}
		if !slices.EqualFunc(got[1:], want, slices.Equal) {
			t.Fatalf("%q\nwant %q", got[1:], want)
		}
	})
}

func TestParseColumnsErrors(t *testing.T) {
	for list, want := range map[string]string{
		"":             `column 1 of "": want a name here, as in body.results.0.lat`,
		"id,":          `column 4 of "id,": want a name`,
		"é,b..c":       `column 5 of "é,b..c": want a name`,
		"a.":           `column 3 of`,
		".a":           `column 1 of`,
		`a."b`:         `column 3 of "a.\"b": this quote is not closed`,
		`a."b"c`:       `column 6 of "a.\"b\"c": want a dot, a comma or the end`,
		`a."\x"`:       `this is no JSON string`,
		`ab"c"`:        `column 3 of "ab\"c\"": want a dot`,
		"meta. x":      `white space at the end of a name`,
		"meta.x .y":    `white space at the end of a name`,
		`meta."x" y,z`: `column 10 of`,
	} {
		if _, err := ParseColumns(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", list, err, want)
		}
	}
	cols := columns(t, " id , meta.street name,body.0\n")
	if len(cols) != 3 || cols[0].Name != "id" || cols[1].Name != "meta.street name" || cols[1].path[1].name != "street name" || cols[2].path[1].index != 0 {
		t.Errorf("%+v", cols)
	}
}

func FuzzParseColumns(f *testing.F) {
	for _, s := range []string{"id,status", `meta."a.b" , body.results.0.lat`, `""`, "a..b", `"\ud800"`, "é.\x00", `"a`, "01,-1,99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cols, err := ParseColumns(s)
		if err != nil {
			return
		}
		var again []string
		for _, c := range cols {
			if len(c.path) == 0 {
				t.Fatalf("%q: a column without a path", s)
			}
			var names []string
			for _, st := range c.path {
				names = append(names, st.name)
			}
			again = append(again, pathText(names...))
		}
		back, err := ParseColumns(strings.Join(again, ","))
		if err != nil {
			t.Fatalf("%q written as %q: %v", s, again, err)
		}
		for i := range cols {
			if utf8.ValidString(s) && !slices.Equal(cols[i].path, back[i].path) {
				t.Fatalf("%q written as %q: %+v, want %+v", s, again, back[i].path, cols[i].path)
			}
		}
	})
}

// The scanner finds what encoding/json finds, and stays within its bounds on
// what is no JSON.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1,{"c":"\"}"}],"a":null}`, `{ "x" : "\\" , "y":{}}`, `{"a":`, `{"a"`, `[1`, `{"":""}`, `{"a":}`, `{"a":"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		err := members(b, func(name, value []byte) error {
			got[string(name)] = string(value)
			find(value, []step{newStep("a"), newStep("0")})
			cell(value)
			new(entry).member(string(name), value, true)
			return nil
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil || !utf8.Valid(b) {
			return
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, %q, want %q", err, got, want)
		}
		for name, value := range want {
			if got[name] != string(value) {
				t.Fatalf("%q: %q, want %q", name, got[name], value)
			}
		}
	})
}
