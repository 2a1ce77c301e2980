package template

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// awkward draws strings with many characters that mean something somewhere.
func awkward(t *rapid.T, label string) string {
	return rapid.StringOf(rapid.OneOf(
		rapid.SampledFrom([]rune("&=+%#?/\\:;@,'\"<>{}[]()$. \t\r\n\x00\x7f\u2028éß日😀-_~")), rapid.Rune(),
	)).Filter(utf8.ValidString).Draw(t, label)
}

// What goes in comes out byte for byte, wherever it stands
// (golang/go#17142: a query's + is no space in a path).
func TestFidelity(t *testing.T) {
	c, err := Compile(Spec{
		URL:  `https://{{.a}}:{{.b}}@h/p/x{{.a}}/{{.b}}x?q={{.a}}&r={{.b}}{{if .a}}&s={{.a}}{{end}}#{{.b}}`,
		JSON: `{"bare":{{.a}},"text":"<{{.a}}|{{.b}}>","{{.b}}k":[{{json .b}},"{{b64 .a}}"]}`,
		ID:   "{{.a}}{{.b}}",
	}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Compile(Spec{URL: `/x{{urlquery .a}}`, Body: `{{.a}}{{.b}}`}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := awkward(t, "a"), awkward(t, "b")
		r, err := c.Render([]string{a, b})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatalf("%q: %v", r.URL, err)
		}
		q := u.Query()
		if u.Path != "/p/x"+a+"/"+b+"x" || q.Get("q") != a || q.Get("r") != b || q.Get("s") != a || u.Fragment != b {
			t.Fatalf("%q: %q %q %q", r.URL, u.Path, q, u.Fragment)
		}
		// In front of the host a colon ends the name, as it does for ports.
		if password, _ := u.User.Password(); u.User.Username()+":"+password != a+":"+b || u.Host != "h" {
			t.Fatalf("%q: user %q", r.URL, u.User)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &got); err != nil {
			t.Fatalf("%s: %v", r.Body, err)
		}
		for key, want := range map[string]any{"bare": a, "text": "<" + a + "|" + b + ">", b + "k": []string{b, base64.StdEncoding.EncodeToString([]byte(a))}} {
			if key == "barek" || len(got) != 3 {
				continue
			}
			var as any
			if _, ok := want.(string); ok {
				as = new(string)
			} else {
				as = new([]string)
			}
			if err := json.Unmarshal(got[key], as); err != nil {
				t.Fatalf("%s: %v", r.Body, err)
			}
			if s, ok := as.(*string); ok && *s != want {
				t.Fatalf("%s: %q, want %q", r.Body, *s, want)
			}
			if l, ok := as.(*[]string); ok && strings.Join(*l, "\x00") != strings.Join(want.([]string), "\x00") {
				t.Fatalf("%s: %q, want %q", r.Body, *l, want)
			}
		}
		if r.ID != a+b {
			t.Fatalf("id %q", r.ID)
		}
		if r, err := plain.Render([]string{a, b}); err != nil || string(r.Body) != a+b || r.URL != "/x"+url.QueryEscape(a) {
			t.Fatalf("%q %v", r.Body, err)
		}
	})
}

// A template of values only gives what text/template gives.
func TestSegmentsAgainstTextTemplate(t *testing.T) {
	actions := []string{
		`{{.a}}`, `{{$.b}}`, `{{raw .a}}`, `{{.b | raw}}`, `{{trim .a}}`, `{{.a | trim | lower}}`, `{{default "x&\"" .b}}`, `{{.b | default ""}}`, `{{b64 (trim .a)}}`,
		`{{urlquery .a}}`, `{{json .a}}`, `{{json .a | b64}}`, `{{index . "a"}}`, `{{index $ "b" | lower}}`, `{{"c&"}}`, `{{env "KEY"}}`, `{{num "17"}}`, `{{(.a)}}`, `{{("x") | lower}}`,
	}
	texts := []string{"/", "?q=", "&", "é", `"`, `\\`, "x", "#", "{", "}"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "pieces") {
			text.WriteString(rapid.SampledFrom(texts).Draw(t, "text"))
			text.WriteString(rapid.SampledFrom(actions).Draw(t, "action"))
		}
		row := []string{awkward(t, "a"), awkward(t, "b")}
		for _, start := range []place{plain, urlStart, jsonString} {
			head, tail := "", ""
			if start == jsonString {
				start, head, tail = jsonValue, "[", "]"
			}
			// {{raw ""}} keeps --json from being checked, {{if}} takes text/template.
			fast, err1 := compilePart("t", head+`{{raw ""}}`+text.String()+tail, start, newColumns([]string{"a", "b"}), env)
			slow, err2 := compilePart("t", head+`{{raw ""}}{{if "x"}}{{end}}`+text.String()+tail, start, newColumns([]string{"a", "b"}), env)
			if (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: %v, %v", &text, err1, err2)
			}
			if err1 != nil {
				continue
			}
			if fast.slow != nil || slow.slow == nil {
				t.Fatalf("%s: taken the wrong way", &text)
			}
			got, err1 := fast.append(nil, row)
			want, err2 := slow.append(nil, row)
			if string(got) != string(want) || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: %q %v, want %q %v", &text, got, err1, want, err2)
			}
		}
	})
}

// Whatever the template, it is refused with a place in it, or every row renders
// or is refused as a row; JSON is JSON.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`https://h/{{.a}}?q={{index . "b c"}}`, `{"a":{{.a}},"b":"{{.a}}"}`, `{{if .a}}{{with .a}}{{.}}{{else}}{{$.a}}{{end}}{{end}}`, `{{raw .a}}{{num .a}}`,
		`{{$x := .a}}{{$x}}`, `{{define "x"}}{{end}}`, `{{range .a}}{{break}}{{end}}`, `{{block "x" .}}{{end}}`, `{{- .a -}}`, `{{(index . "a").b}}`, `{{nil}}`, `{{.a | default "x" | eq "y"}}`,
		`{{$.a.b}}`, `{{and .a (not .a)}}`, `{{/* x */}}`, `{{1i}}`, `{{'x'}}`, `{{with $y := .a}}{{$y}}{{end}}`, `{{$x = .a}}`, `{{else}}`, "{{\n.a\n}}", "{{index . `a`}}", `{{if $x := .a}}{{$x}}{{end}}`,
	} {
		f.Add(seed, "v&\"\n")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		for _, spec := range []Spec{{URL: text}, {JSON: text}, {Body: text}, {ID: text}, {Headers: []Header{{"X", text}}}} {
			spec.Env = env
			c, err := Compile(spec, []string{"a", "b c"})
			if err != nil {
				e, ok := err.(*Error)
				if !ok || e.Line < 1 || e.Column < 1 || e.Line > 1+strings.Count(text, "\n") || e.Message == "" || strings.Contains(e.Detail(), "\x1b") {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			r, err := c.Render([]string{value, "x"})
			if err != nil {
				bad, ok := err.(*RowError)
				if !ok || strings.Contains(bad.Message, "template:") || strings.Contains(bad.Message, "executing") {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			if spec.JSON != "" && utf8.ValidString(text) && utf8.ValidString(value) && !json.Valid(r.Body) {
				t.Fatalf("%q gives %q", text, r.Body)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for name, url := range map[string]string{"segments": "https://h/v1?q={{.a}}", "text-template": "https://h/v1?q={{if .a}}{{.a}}{{end}}"} {
		b.Run(name, func(b *testing.B) {
			c, err := Compile(Spec{URL: url}, []string{"a", "b", "c"})
			if err != nil {
				b.Fatal(err)
			}
			row := []string{"São Paulo", "x", "y"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Render(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
