package input

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// sendable checks what every good row promises, whatever the input.
func sendable(t *testing.T, r *Row) {
	t.Helper()
	req, err := http.NewRequest(r.Method, r.URL.String(), nil)
	if err != nil {
		t.Fatalf("net/http refuses the row: %v", err)
	}
	switch {
	case r.Target != r.URL.RequestURI():
		t.Fatalf("target %q, URL gives %q", r.Target, r.URL.RequestURI())
	case req.URL.RequestURI() != r.Target:
		t.Fatalf("parsed again the target is %q, was %q", req.URL.RequestURI(), r.Target)
	case r.URL.Scheme != "http" && r.URL.Scheme != "https", r.URL.Hostname() == "", r.URL.User != nil:
		t.Fatalf("URL %#v", r.URL)
	case strings.ContainsFunc(r.Target, func(c rune) bool { return c <= ' ' || c >= 0x7F }):
		t.Fatalf("target %q", r.Target)
	case r.ID == "" || r.Size < len(r.Body)+len(r.Target):
		t.Fatalf("id %q, size %d", r.ID, r.Size)
	}
}

func told(t *testing.T, e *RowError, line string) {
	t.Helper()
	if e.Message == "" || e.Line < 1 || e.Column > len(line)+1 {
		t.Fatalf("%+v", e)
	}
	if s := e.Error() + e.Detail(); !utf8.ValidString(s) || strings.ContainsFunc(strings.ReplaceAll(s, "\n", ""), func(c rune) bool { return c < ' ' || c == 0x7F }) {
		t.Fatalf("not fit for a terminal: %q", s)
	}
}

func FuzzURLs(f *testing.F) {
	for _, seed := range []string{
		"http://h/1", "POST https://u:p@h:8080/a?b#c", "//h/x", "http://[::1%25eth0]:80/%41", "http://h/é?é", "# x", "http://h:/", "http://a_b/", "http://h/?a=%zz",
		"http://%41/", "http://h/a:b", "http:h", "http://h\\x", "http://h?#", "http://1.2.3.4:65536",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			return
		}
		s, err := Open(nil, strings.NewReader(line), Options{Format: "urls"})
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range s.Rows() {
			if bad, ok := err.(*RowError); ok {
				told(t, bad, line)
				continue
			}
			if err != nil {
				return // not text at all
			}
			sendable(t, row)
		}
		// The fast way gives what net/url gives.
		var fast, slow Row
		if checkURL(line) == nil && fast.fastURL(line) {
			if f := slow.slowURL(line, nil); f != nil {
				t.Fatalf("%q: the fast way takes what net/url refuses: %s", line, f.msg)
			}
			if fast.url != slow.url || fast.Target != slow.Target {
				t.Fatalf("%q: fast %+v %q, slow %+v %q", line, fast.url, fast.Target, slow.url, slow.Target)
			}
		}
	})
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{
		`{"url":"http://h","body":{"a":[1,2.5e-3,"\ud83d\ude00"]},"id":"x"}`, `{"url":"http://h","headers":{"a":["b"],"host":"c"},"cost":{"t":1},"timeout":"1s","meta":null}`,
		`{"url":"http://h","body":"\u0000\n"}`, `{"url":"http://h","body_base64":"AAE="}`, `{}`, `[`, `{"a":tru}`, `{"id":-0,"custom_id":1}`, `{"url":"http://h",}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			return
		}
		s, err := Open(nil, strings.NewReader(line), Options{Format: "jsonl"})
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range s.Rows() {
			if bad, ok := err.(*RowError); ok {
				told(t, bad, line)
				continue
			}
			if err != nil {
				return
			}
			sendable(t, row)
			text := bytes.TrimPrefix([]byte(line), []byte("\xEF\xBB\xBF"))
			var oracle struct {
				Body json.RawMessage
				Meta json.RawMessage
			}
			if err := json.Unmarshal(text, &oracle); err != nil {
				t.Fatalf("encoding/json refuses the row: %v", err)
			}
			var body string
			switch {
			case len(oracle.Body) == 0:
			case oracle.Body[0] != '"':
				body = string(oracle.Body)
			default:
				if err := json.Unmarshal(oracle.Body, &body); err != nil {
					t.Fatal(err)
				}
			}
			if oracle.Body != nil && string(row.Body) != body || string(row.Meta) != string(oracle.Meta) {
				t.Fatalf("body %q meta %q, want %q and %q", row.Body, row.Meta, body, oracle.Meta)
			}
		}
		// The syntax is that of encoding/json, surrogates aside.
		v := scanner{text: []byte(line)}
		if utf8.ValidString(line) {
			_, bad := v.value(0)
			ok := bad == nil
			if v.space(); ok && v.at < len(line) {
				ok = false
			}
			if want := json.Valid([]byte(line)); ok != want && !(want && strings.Contains(bad.msg, "surrogate") || want && strings.Contains(bad.msg, "nested")) {
				t.Fatalf("%q is JSON: %v, want %v", line, ok, want)
			}
		}
	})
}
