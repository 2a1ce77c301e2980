package template

import (
	"errors"
	"strings"
	"testing"
)

func env(name string) (string, bool) { return "k&y", name == "KEY" }

var names = []string{"id", "name", "n", "host", "my col", "empty", "Straße", "v6"}
var values = []string{"7", `A&B "é" ` + "\u2028\n", "-1.50e+2", "h.test:8080", "50%", "", "x", "[::1]:80"}

// url renders one URL template for the row above.
func render(t *testing.T, s Spec) (Request, error) {
	t.Helper()
	s.Env = env
	c, err := Compile(s, names)
	if err != nil {
		return Request{}, err
	}
	return c.Render(values)
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		`https://h/?q={{.name}}`:                                           `https://h/?q=A%26B%20%22%C3%A9%22%20%E2%80%A8%0A`,
		`https://h/{{.name}}/x`:                                            `https://h/A%26B%20%22%C3%A9%22%20%E2%80%A8%0A/x`,
		`https://h/{{index . "my col"}}`:                                   `https://h/50%25`,
		`https://h/{{index $ "my col"}}`:                                   `https://h/50%25`,
		`https://h/{{raw .host}}?{{.Straße}}`:                              `https://h/h.test:8080?x`,
		`https://h/{{.host | raw}}`:                                        `https://h/h.test:8080`,
		`https://h/{{.host}}`:                                              `https://h/h.test%3A8080`,
		`https://{{.host}}/`:                                               `https://h.test:8080/`,
		`https://{{.v6}}/{{.v6}}`:                                          `https://[::1]:80/%5B%3A%3A1%5D%3A80`,
		`https://{{.name}}/`:                                               `https://A%26B%20%22%C3%A9%22%20%E2%80%A8%0A/`,
		`{{raw .host}}/{{.name | b64}}`:                                    `h.test:8080/QSZCICLDqSIg4oCoCg%3D%3D`,
		`{{raw .host}}://{{.host}}/`:                                       `h.test:8080://h.test:8080/`,
		`https://h/?q={{urlquery .name}}`:                                  `https://h/?q=A%26B+%22%C3%A9%22+%E2%80%A8%0A`,
		`/v1?q={{json .id}}`:                                               `/v1?q=%227%22`,
		`/v1?q={{trim .name | lower}}`:                                     `/v1?q=a%26b%20%22%C3%A9%22`,
		`/v1?q={{lower (trim .name)}}`:                                     `/v1?q=a%26b%20%22%C3%A9%22`,
		`/v1?q={{default "n/a" .empty}}`:                                   `/v1?q=n%2Fa`,
		`/v1?q={{.empty | default "n/a"}}`:                                 `/v1?q=n%2Fa`,
		`/v1?q={{default .id .empty}}`:                                     `/v1?q=7`,
		`/v1?key={{env "KEY"}}`:                                            `/v1?key=k%26y`,
		`/v1{{if .id}}?q={{.name}}{{end}}`:                                 `/v1?q=A%26B%20%22%C3%A9%22%20%E2%80%A8%0A`,
		`/v1{{if .empty}}?q={{else if eq .id "7"}}?id={{.id}}{{end}}`:      `/v1?id=7`,
		`/{{with .name}}{{.}}{{$.id}}{{end}}`:                              `/A%26B%20%22%C3%A9%22%20%E2%80%A8%0A7`,
		`/{{$x := trim .name}}{{$x}}`:                                      `/A%26B%20%22%C3%A9%22`,
		`http{{if .id}}s{{end}}://{{.host}}/`:                              `https://h.test:8080/`,
		"/x  {{- /* note */ -}}  y":                                        "/xy",
		`/{{or .empty .id}}{{and .id .n}}{{not .id}}{{ne .id "7"}}`:        `/7-1.50e%2B2falsefalse`,
		`/{{if .n}}{{raw .n}}{{end}}`:                                      `/-1.50e+2`,
		`/{{if .n}}{{index . "my col"}}{{env "KEY"}}{{num .n}}{{end}}?#{}`: `/50%25k%26y-1.50e%2B2?#{}`,
	} {
		if got, err := render(t, Spec{URL: text}); err != nil || got.URL != want {
			t.Errorf("%s\n gives %q, %v\n  want %q", text, got.URL, err, want)
		}
	}
}

func TestJSON(t *testing.T) {
	const name = `A&B \"é\" ` + "\u2028" + `\n`
	for text, want := range map[string]string{
		`{"q":{{.name}}}`:                               `{"q":"` + name + `"}`,
		`{"q":"<{{.name}}>"}`:                           `{"q":"<` + name + `>"}`,
		`{"q":{{json .name}}}`:                          `{"q":"` + name + `"}`,
		`{"q":"{{json .id}}"}`:                          `{"q":"\"7\""}`,
		`{"{{.id}}":{{num .n}},"r":{{raw .n}}}`:         `{"7":-1.50e+2,"r":-1.50e+2}`,
		`{"q":"\"{{.id}}\\"}`:                           `{"q":"\"7\\"}`,
		`[{{if .empty}}1{{else}}{{.id}}{{end}}]`:        `["7"]`,
		`{"gold":{{eq .id "7"}},"t":"{{eq .id "7"}}"}`:  `{"gold":true,"t":"true"}`,
		`"{{with .name}}{{.}}{{end}}"`:                  `"` + name + `"`,
		`{"a":{"b":{{.id}}}}`:                           `{"a":{"b":"7"}}`,
		`{{.id}}`:                                       `"7"`,
		`[{{default "x" .empty}},{{.empty}},"{{"a"}}"]`: `["x","","a"]`,
	} {
		got, err := render(t, Spec{JSON: text})
		if err != nil || string(got.Body) != want || !got.JSON {
			t.Errorf("%s\n gives %q, %v\n  want %q", text, got.Body, err, want)
		}
	}
}

func TestOtherParts(t *testing.T) {
	got, err := render(t, Spec{
		Headers: []Header{{"x-name", "{{trim .name}}"}, {"X-Empty", ""}, {"x-key", `a {{env "KEY"}}`}}, Body: `{{.name}}"{{.id}}"`, ID: "row-{{.id}}",
	})
	if err != nil {
		t.Fatal(err)
	}
	if h := got.Headers; len(h) != 3 || h[0] != (Header{"X-Name", `A&B "é"`}) || h[1] != (Header{"X-Empty", ""}) || h[2].Value != "a k&y" {
		t.Errorf("headers %q", h)
	}
	if string(got.Body) != values[1]+`"7"` || got.JSON || got.ID != "row-7" || got.URL != "" {
		t.Errorf("%+v", got)
	}
	if got, err := render(t, Spec{Body: "{{.empty}}"}); err != nil || !got.HasBody || got.Body == nil {
		t.Errorf("an empty body: %+v, %v", got, err)
	}
	if got, err := render(t, Spec{}); err != nil || got.HasBody {
		t.Errorf("no body: %+v, %v", got, err)
	}
}

func TestRowErrors(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{JSON: `{"n":{{num .name}}}`}, `--json: num: "A&B \"é\" \u2028\n" is not a number`},
		{Spec{JSON: `{"n":{{if .id}}{{num .name}}{{end}}}`}, `--json: num: "A&B \"é\" \u2028\n" is not a number`},
		{Spec{JSON: `{"n":{{raw .name}}}`}, `--json: the row gives no JSON: invalid character 'A' looking for beginning of value`},
		{Spec{JSON: `{"n":1{{num .n}}}`}, `--json: the row gives no JSON: invalid character '-' after object key:value pair`},
		{Spec{JSON: `{"n":{{if .empty}}1{{end}}}`}, `--json: the row gives no JSON: invalid character '}' looking for beginning of value`},
		{Spec{Headers: []Header{{"X-A", "{{.name}}"}}}, `-H X-A: a header cannot hold "\n"`},
		{Spec{Headers: []Header{{"X-A", "{{raw .name}}"}}}, `-H X-A: a header cannot hold "\n"`},
		{Spec{URL: `/a/.{{.empty}}./b`}, `--url: a segment of the path is "." or "..": it would name another resource`},
		{Spec{URL: `http://h/a/{{.empty}}.?x`}, `--url: a segment of the path is "." or "..": it would name another resource`},
	} {
		_, err := render(t, c.spec)
		if bad, ok := errors.AsType[*RowError](err); !ok || bad.Error() != c.want {
			t.Errorf("%+v\n gives %v\n  want %s", c.spec, err, c.want)
		}
	}
	// What a path may hold.
	for _, text := range []string{"http://h/..{{.id}}", "http://h/?a=/../{{.id}}", "http://h/.well-known/{{.id}}", "{{raw .host}}/../x"} {
		if _, err := render(t, Spec{URL: text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	all := "id, name, n, host, \"my col\", empty, Straße, v6"
	for text, want := range map[string]string{
		`/v1?q={{.nmae}}`:                  `--url:1:9: unknown column "nmae" (did you mean "name"?): there are ` + all,
		`/v1?q={{.Name}}`:                  `--url:1:9: unknown column "Name" (did you mean "name"?): there are ` + all,
		"/é\n?q={{ .zzzzzz }}":             `--url:2:7: unknown column "zzzzzz": there are ` + all,
		`/{{if .zzzzzz}}{{end}}`:           `--url:1:7: unknown column "zzzzzz": there are ` + all,
		`/{{lower (trim .zzzzzz)}}`:        `--url:1:16: unknown column "zzzzzz": there are ` + all,
		`/{{index . "my cols"}}`:           `--url:1:12: unknown column "my cols" (did you mean "my col"?): there are ` + all,
		`/{{name}}`:                        `--url:1:4: a column is written with a dot: {{.name}}`,
		`/{{.my col}}`:                     `--url:1:4: unknown column "my"`,
		`/{{.id col}}`:                     `--url:1:8: a column takes no arguments: one whose name has a blank in it is written {{index . "my col"}}`,
		`/{{.id-x}}`:                       `--url:1:2: bad character U+002D '-': a column that is no word is written {{index . "my-col"}}`,
		`/{{.id.x}}`:                       `--url:1:7: a column is text and has no fields`,
		`/{{.}}`:                           `--url:1:4: {{.}} is the whole row`,
		`/{{$}}`:                           `--url:1:4: {{$}} is the whole row`,
		`/{{trim}}`:                        `--url:1:4: trim wants a value: {{trim .column}}`,
		`/{{trim .id .n}}`:                 `--url:1:4: trim is given 2 values, it takes 1`,
		`/{{trimm .id}}`:                   `--url:1:4: unknown function "trimm" (did you mean "trim"?)`,
		`/{{printf "%s" .id}}`:             `--url:1:4: unknown function "printf": there are and, b64, default, env, eq, index, json, lower, ne, not, num, or, raw, trim, urlquery; a column is written with a dot`,
		`/{{_escape1 .id}}`:                `--url:1:4: unknown function "_escape1"`,
		`/{{trim lower}}`:                  `--url:1:9: a function as a value is put in parentheses: (lower …)`,
		`/{{eq .id 7}}`:                    `--url:1:11: columns are text: write "7", in quotes`,
		`/{{eq .id true}}`:                 `--url:1:11: columns are text: write "true", in quotes`,
		`/{{raw .id | trim}}`:              `--url:1:4: raw must come last: the functions after it undo it`,
		`/{{trim (raw .id)}}`:              `--url:1:10: raw must come last: the functions after it undo it`,
		`/{{if raw .id}}{{end}}`:           `--url:1:7: raw means nothing in a condition: leave it out`,
		`/{{.id | .n}}`:                    `--url:1:10: only a function can follow |`,
		`/{{index . .id}}`:                 `--url:1:4: index takes the row and a name in quotes: {{index $ "my col"}}`,
		`/{{env "HOME"}}`:                  `--url:1:8: variable "HOME" is not set or not allowed in templates`,
		`/{{env .id}}`:                     `--url:1:4: env takes a name in quotes: {{env "NAME"}}`,
		`/{{"KEY" | env}}`:                 `--url:1:12: env takes a name in quotes: {{env "NAME"}}`,
		`{{.host}}/x`:                      `--url:1:3: the URL begins with a value, whose slashes and colons are escaped: write {{raw …}} for a column of whole URLs`,
		`/{{range .id}}{{end}}`:            `--url:1:2: {{range}} is not available`,
		`/{{template "x"}}`:                `--url:1:2: {{template}} is not available`,
		`/{{define "x"}}a{{end}}`:          `--url:1:4: {{define}} and {{block}} are not available`,
		`/{{with .id}}{{.n}}{{end}}`:       `--url:1:16: inside {{with}} the dot is its value: write {{$.n}}`,
		`/{{.id}}{{.n`:                     `--url:1:9: unclosed action`,
		`/{{if .id}}x`:                     `--url:1:2: {{if}} or {{with}} without {{end}}`,
		"/\xe9{{.id}}":                     "--url:1:2: not UTF-8",
		`/{{.id}}{{end}}`:                  `--url:1:9: unexpected {{end}}`,
		`/{{.id}}{{if}}{{.n}}`:             `--url:1:9: missing value for if`,
		`{{if .id}}http://{{end}}x`:        `--url:1:1: the branches end in different places (the host, the start of the URL)`,
		`--json:{"q":"{{if .id}}"{{end}}}`: `--json:1:7: the branches end in different places (outside quotes, inside quotes)`,
		`--json:{"q":"{{.id}}}`:            `--json:1:15: the JSON ends inside quotes`,
		`--json:{"q":"\{{.id}}"}`:          `--json:1:10: a value after a backslash`,
		`--json:{"q":{{.id}},}`:            `--json:1:14: this gives no JSON: invalid character '}'`,
		`--json:{"q":{{.id}} {{.n}}}`:      `--json:1:16: this gives no JSON: invalid character '"' after object`,
		`--json:{"q":{{.id}}`:              `--json:1:13: this gives no JSON: unexpected end`,
		`--json:{{"q":1}}`:                 `--json:1:1: expected :=: where two braces are meant as they are, put a blank between them`,
		`--json:{"q":{{num "x"}}}`:         `--json:1:8: num: "x" is not a number`,
		`/{{` + strings.Repeat(" ", 300) + `.` + "\x00" + `x}}`: `--url:1:2: bad character U+0000`,
	} {
		spec := Spec{URL: text}
		if json, ok := strings.CutPrefix(text, "--json:"); ok {
			spec = Spec{JSON: json}
		}
		_, err := render(t, spec)
		if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Error(), want) {
			t.Errorf("%s\n gives %v\n  want %s", text, err, want)
		}
	}
	if _, err := Compile(Spec{Body: "a", JSON: "1"}, names); err == nil {
		t.Error("two bodies are accepted")
	}
	_, err := Compile(Spec{URL: "/{{.x}}"}, []string{"line"})
	if err == nil || err.Error() != `--url:1:4: unknown column "x": the only one is line` {
		t.Error(err)
	}
}

// The caret points into the action, and text around it, which may hold a key,
// is not shown.
func TestDetail(t *testing.T) {
	_, err := Compile(Spec{URL: "https://h/?key=s3cret&q={{ .nmae }}&x=1"}, names)
	e, ok := errors.AsType[*Error](err)
	if want := "     1 | …{{ .nmae }}\n             ^"; !ok || e.Detail() != want {
		t.Errorf("%s\nwant\n%s", e.Detail(), want)
	}
	_, err = Compile(Spec{JSON: `{"key":"s3cret",}`}, names)
	if e, ok := errors.AsType[*Error](err); !ok || e.Detail() != "" {
		t.Errorf("%v %s", err, e.Detail())
	}
}

func TestOpenColumns(t *testing.T) {
	c, err := Compile(Spec{URL: `/{{.a}}{{index . "b c"}}`, ID: `{{.a}}{{if .d}}{{end}}`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Columns(), ","); got != "a,b c,d" || !c.NamesRows() {
		t.Error(got)
	}
	if r, err := c.Render([]string{"1", "2", "3"}); err != nil || r.URL != "/12" || r.ID != "1" {
		t.Errorf("%+v %v", r, err)
	}
	if err := (Spec{URL: "/{{.a}}"}).Check(); err != nil {
		t.Error(err)
	}
	if err := (Spec{URL: "/{{.a"}).Check(); err == nil {
		t.Error("a broken template passes")
	}
}
