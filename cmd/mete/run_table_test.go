package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// What a row says is what goes to the wire, and what comes back is what the
// record holds, byte for byte.
func TestTableBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	values := []string{
		`<a href="x">&amp;</a>`, "12345678901234567890", "1e400", `{"b":1,"a":[2 , 3]}`, "a\u2028b\u2029c", "tab\tand\\slash",
		"line\nbreak\r\nand more", "Zürich", "日本", "e\u0301 is not é", "𝒳\U0010FFFF", "\u007f\u0080", "%41+%zz&=#?", " blank ", "\ufeffinside",
	}
	var mu sync.Mutex
	bodies := map[string]string{}
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies[r.URL.Query().Get("v")] = string(body)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; charset=latin-1")
		_, _ = w.Write(append(body, "\x00caf\xe9"...))
	})
	var table strings.Builder
	table.WriteString("v\n")
	for _, v := range values {
		fmt.Fprintf(&table, "\"%s\"\n", strings.ReplaceAll(v, `"`, `""`))
	}
	write(t, dir, "t.csv", strings.TrimSuffix(table.String(), "\n"))
	launch(t, dir, "run", "t.csv", "--url", p.URL+"/?v={{.v}}", "-d", "{{.v}}", "-o", "out.jsonl").exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), len(values))
	for _, v := range values {
		if got, ok := bodies[v]; !ok || got != v {
			t.Errorf("%q arrived as %q, %v", v, got, ok)
		}
	}
	for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
		v, ok := bytes.CutSuffix(r.Body, []byte("\x00caf\xe9"))
		if _, sent := bodies[string(v)]; !ok || !sent {
			t.Errorf("the record holds %q", r.Body)
		}
	}
}

// Values are picked out of bodies of any size, and integers keep their digits.
func TestValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/big":
			fmt.Fprintf(w, `{"pad":"%s","n":12345678901234567890}`, strings.Repeat("x", 20<<20))
		case "/text":
			fmt.Fprint(w, "n: 1")
		default:
			fmt.Fprint(w, `{"n":12345678901234567890,"f":1.5}`)
		}
	})
	write(t, dir, "urls.txt", p.URL+"/small", p.URL+"/big", p.URL+"/text")
	for _, tt := range []struct {
		how  []string
		want map[string]string // value, or what the error says
	}{
		{[]string{"-o", "auto.jsonl"}, map[string]string{"/small": "12345678901234567890", "/big": "12345678901234567890", "/text": "not JSON"}},
		{[]string{"-o", "file.jsonl", "--body", "file"}, map[string]string{"/small": "12345678901234567890", "/big": "12345678901234567890", "/text": "not JSON"}},
		{[]string{"-o", "none.jsonl", "--body", "none"}, map[string]string{"/small": "12345678901234567890", "/big": "in no file", "/text": "not JSON"}},
		{nil, map[string]string{"/small": "12345678901234567890", "/big": "in no file", "/text": "not JSON"}},
	} {
		m := launch(t, dir, append([]string{"run", "urls.txt", "--jq", ".n"}, tt.how...)...)
		m.exits(1)
		out := m.stdout.String()
		if tt.how != nil {
			text, err := os.ReadFile(filepath.Join(dir, tt.how[1]))
			if err != nil {
				t.Fatal(err)
			}
			out = string(text)
		}
		for _, r := range records(t, out) {
			path, got := strings.TrimPrefix(r.URL, p.URL), string(r.Value)
			if r.Error != nil {
				got += r.Error.Message
			}
			if want := tt.want[path]; !strings.Contains(got, want) || got == "" || (r.Error == nil) != r.OK {
				t.Errorf("%v %s: %q, want %q", tt.how, path, got, want)
			}
		}
	}
}
