package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/mete/internal/template"
	"pgregory.net/rapid"
)

func TestRendered(t *testing.T) {
	header := []template.Header{{Name: "x-city", Value: "{{.name}}"}, {Name: "Accept", Value: "a/b"}, {Name: "X-City", Value: "2"}, {Name: "authorization", Value: `{{env "KEY"}}`}}
	spec := template.Spec{URL: "/v1?q={{.name}}", Headers: header, Env: func(string) (string, bool) { return "s3cret", true }}
	base, _ := url.Parse("https://h/base")
	o := Options{Format: "csv", Template: &spec, BaseURL: base}
	row := one(t, "name\nOslo\n", o)
	if row.URL.String() != "https://h/v1?q=Oslo" || row.Method != "GET" || row.HasBody || row.IDGiven || fmt.Sprint(row.Header["X-City"]) != "[Oslo 2]" ||
		row.Header.Get("Accept") != "a/b" || row.Header.Get("Authorization") != "s3cret" || string(row.Meta) != `{"name":"Oslo"}` || row.Line != 2 {
		t.Errorf("%+v", row)
	}
	if row.Size < row.size() || row.Size < len(row.Meta)+len(row.Target) {
		t.Errorf("size %d", row.Size)
	}
	// A body makes a POST, unless a method is given.
	spec.Body, spec.ID = "<{{.name}}>", "city-{{.name}}"
	row = one(t, "id,name\n1,Oslo\n", o)
	if row.Method != "POST" || string(row.Body) != "<Oslo>" || row.ContentType != "" || row.ID != "city-Oslo" {
		t.Errorf("%+v", row)
	}
	o.Method = "put"
	if row = one(t, "name\nOslo\n", o); row.Method != "PUT" {
		t.Error(row.Method)
	}
	spec.Body, spec.JSON = "", `{{.name}}`
	if row = one(t, "name\nOslo\n", o); row.ContentType != "application/json" || string(row.Body) != `"Oslo"` {
		t.Errorf("%+v", row)
	}
	spec.Headers = append(header, template.Header{Name: "Content-Type", Value: "application/x+json"})
	if row = one(t, "name\nOslo\n", o); row.ContentType != "" || row.Header.Get("Content-Type") != "application/x+json" {
		t.Errorf("%+v", row)
	}
}

// Bad values are errors of their row, with its line and the template's place.
func TestRenderErrors(t *testing.T) {
	for _, c := range []struct {
		spec        template.Spec
		value, want string
	}{
		{template.Spec{URL: "https://{{.a}}/"}, "a/b", "stdin:2: --url: the host of the URL is not valid"},
		{template.Spec{URL: "https://{{.a}}/"}, "h@evil", "stdin:2: --url: the host of the URL is not valid"},
		{template.Spec{URL: "https://h:{{.a}}/"}, "99999", "stdin:2: --url: port 99999 is out of range: 1 to 65535"},
		{template.Spec{URL: "{{raw .a}}"}, "ftp://h", `stdin:2: --url: scheme "ftp" is not supported: only http and https`},
		{template.Spec{URL: "{{raw .a}}"}, "http://h/a b", "stdin:2: --url: space in the URL: write %20"},
		{template.Spec{URL: "{{raw .a}}"}, `""`, "stdin:2: --url: the URL is empty"},
		{template.Spec{URL: "{{raw .a}}"}, "h.test/x", "stdin:2: --url: missing scheme: did you mean https://h.test/x?"},
		{template.Spec{URL: "https://h/{{.a}}/x"}, "..", `stdin:2: --url: a segment of the path is "." or "..": it would name another resource`},
		{template.Spec{URL: "https://h/", Headers: []template.Header{{Name: "X", Value: "{{.a}}"}}}, "\"a\nb\"", `stdin:2: -H X: a header cannot hold "\n"`},
		{template.Spec{URL: "https://h/", ID: "{{.a}}"}, `""`, "stdin:2: --id is empty"},
		{template.Spec{URL: "https://h/", ID: "{{.a}}"}, strings.Repeat("x", 300), "stdin:2: --id has 300 bytes, more than 256"},
		{template.Spec{URL: "https://h/", Headers: []template.Header{{Name: "Host", Value: "{{.a}}"}}}, "a/b", "stdin:2: -H: header Host is not a host"},
	} {
		rows, bad := read(t, "a,b\n"+c.value+",1\n\"\",\n", Options{Format: "csv", Template: &c.spec, Check: func(r *Row) error {
			if r.Line > 2 {
				return errors.New("the last")
			}
			return nil
		}})
		if len(rows) != 0 || len(bad) != 2 || bad[0].Error() != c.want {
			t.Errorf("%+v %q\n gives %v %v\n  want %s", c.spec, c.value, rows, bad, c.want)
		}
	}
}

// What cannot work for any row is told before the first.
func TestTemplateRefused(t *testing.T) {
	hasURL, noURL := &template.Spec{URL: "/{{.a}}"}, &template.Spec{Body: "x"}
	for want, o := range map[string]Options{
		"a table needs --url":                     {Format: "csv"},
		"a table needs --url, for":                {Format: "tsv", Template: noURL},
		"plain lines need --url":                  {Format: "lines"},
		"a list of URLs takes no --url":           {Format: "urls", Template: hasURL},
		"templates for JSON Lines need --url":     {Format: "jsonl", Template: noURL},
		"--url:1:2: unclosed action":              {Template: &template.Spec{URL: "/{{.a"}},
		"-H: not a header name: \"A b\"":          {Template: &template.Spec{Headers: []template.Header{{Name: "A b"}}}},
		"-H: header Content-Length is refused":    {Template: &template.Spec{Headers: []template.Header{{Name: "content-length"}}}},
		"-d and --json exclude each other":        {Template: &template.Spec{Body: "x", JSON: "1"}},
		"not a method: \"A B\"":                   {Method: "A B"},
		"method CONNECT is not a request":         {Method: "connect"},
		"the delimiter '\"' is not one":           {Delimiter: '"'},
		"the delimiter '¦' is not one":            {Delimiter: '¦'},
		"the delimiter '\\n' is not one":          {Delimiter: '\n'},
		"unknown input format \"xml\": want auto": {Format: "xml"},
	} {
		if _, err := Open(nil, strings.NewReader(""), o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	path := write(t, "a.csv", "a\n1\n")
	s, err := Open([]string{path}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err == nil || !strings.HasPrefix(err.Error(), path+": a table needs --url") {
		t.Error(err)
	}
}

// A list of URLs takes everything but a URL from a template.
func TestURLsWithTemplate(t *testing.T) {
	o := Options{Method: "PATCH", Template: &template.Spec{JSON: `{"u":{{.url}}}`, ID: "<{{.url}}>", Headers: []template.Header{{Name: "X-A", Value: "b"}}}}
	rows, bad := read(t, "# x\nhttp://h/1\nPUT http://h/2\n", o)
	if len(bad) > 0 || len(rows) != 2 || rows[0].Method != "PATCH" || rows[1].Method != "PUT" || string(rows[1].Body) != `{"u":"http://h/2"}` ||
		rows[0].ID != "<http://h/1>" || rows[0].Header.Get("X-A") != "b" || rows[0].Meta != nil || rows[0].Target != "/1" {
		t.Errorf("%+v %v", rows, bad)
	}
	if row := one(t, "http://h/1", Options{Method: "delete"}); row.Method != "DELETE" {
		t.Error(row.Method)
	}
	if row := one(t, "http://h/1", Options{Template: &template.Spec{Body: "x"}}); row.Method != "POST" {
		t.Error(row.Method)
	}
}

// Rows of a table too are known by their request, not by their line
// (NousResearch/hermes-agent#95322).
func TestTableIdentity(t *testing.T) {
	ids := func(text string, o Options) (ids []string) {
		rows, bad := read(t, text, o)
		if len(bad) > 0 {
			t.Fatal(bad[0])
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	o := tableOptions("csv", "a")
	before := ids("a,b\n1,x\n2,y\n1,z\n", o)
	after := ids("b,a\nnew,0\nx,1\n\"y\ny\",2\nz,1\n", o)
	if fmt.Sprint(after[1:]) != fmt.Sprint(before) || !strings.HasSuffix(before[2], "-2") {
		t.Errorf("ids moved: %v, %v", before, after)
	}
	if urls := ids("http://h/?q=1", Options{}); urls[0] != before[0] {
		t.Errorf("the same request in a list is %v, want %v", urls, before[0])
	}
	if got := ids("a,id\n1,x\n2,y\n", o); fmt.Sprint(got) != "[x y]" {
		t.Error(got)
	}
	o.OnDuplicate = "suffix"
	if got := ids("a,id\n1,x\n2,x\n", o); fmt.Sprint(got) != "[x x-2]" {
		t.Error(got)
	}
}

func TestCheck(t *testing.T) {
	refuse := errors.New("no provider for h")
	o := Options{Check: func(r *Row) error {
		if r.Size == 0 || r.Key == [16]byte{} || r.ID == "" {
			t.Errorf("unfinished row %+v", r)
		}
		if r.URL.Host == "h" {
			return refuse
		}
		return nil
	}}
	rows, bad := read(t, `{"id":"a","url":"http://h/"}`+"\n"+`{"url":"http://ok/"}`+"\n"+`{"url":"http://h/"}`, o)
	if len(rows) != 1 || len(bad) != 2 || bad[0].Error() != "stdin:1: no provider for h" || !errors.Is(bad[0], refuse) || bad[0].ID != "a" || bad[1].ID == "" || bad[0].Key == bad[1].Key {
		t.Errorf("%v %v", rows, bad)
	}
}

// Any text in a field, its line breaks too, arrives as it is: CSV, template,
// URL and JSON together.
func TestTableFidelity(t *testing.T) {
	field := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("&=+%#?/\\:;@,'\"<>{}[]. \t\r\n\u2028éß日😀")), rapid.Rune())).Filter(func(s string) bool {
		return utf8.ValidString(s) && !strings.Contains(s, "\x00") && !strings.HasPrefix(s, "\ufeff")
	})
	spec := &template.Spec{URL: `http://h/p{{.a}}?q={{index . "b c"}}`, JSON: `{"a":{{.a}},"b":"{{index . "b c"}}"}`, ID: `x{{.a}}`}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := field.Draw(rt, "a"), field.Draw(rt, "b")
		if len(a) >= longestID {
			return
		}
		s, err := Open(nil, strings.NewReader("a,b c\n"+quoteField(a, ',', true)+","+quoteField(b, ',', false)+"\r\n"), Options{Format: "csv", Template: spec})
		if err != nil {
			rt.Fatal(err)
		}
		row, err := s.Next()
		if err != nil {
			rt.Fatal(err)
		}
		u, err := url.Parse(row.URL.String())
		if err != nil {
			rt.Fatal(err)
		}
		if u.Path != "/p"+a || u.Query().Get("q") != b || row.Target != u.RequestURI() || row.ID != "x"+a {
			rt.Fatalf("%q %q: %q", a, b, row.Target)
		}
		var body struct{ A, B string }
		if err := json.Unmarshal(row.Body, &body); err != nil || body.A != a || body.B != b {
			rt.Fatalf("%q %q: %s %v", a, b, row.Body, err)
		}
		var meta map[string]string
		if err := json.Unmarshal(row.Meta, &meta); err != nil || meta["a"] != a || meta["b c"] != b {
			rt.Fatalf("%q %q: %s %v", a, b, row.Meta, err)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add("a b&c\n", "{{.line}}")
	f.Add("{\"line\":1}\n", "{{raw .line}}")
	f.Fuzz(func(t *testing.T, text, value string) {
		o := Options{Template: &template.Spec{URL: "http://h/" + value, JSON: `{"x":"` + value + `"}`}}
		s, err := Open(nil, strings.NewReader(text), o)
		if err != nil {
			return
		}
		for row, err := range s.Rows() {
			if bad, ok := err.(*RowError); ok {
				told(t, bad, text)
				continue
			}
			if err != nil {
				return
			}
			sendable(t, row)
			if !json.Valid(row.Body) && utf8.ValidString(value) || !json.Valid(row.Meta) {
				t.Fatalf("%s %s", row.Body, row.Meta)
			}
		}
	})
}
