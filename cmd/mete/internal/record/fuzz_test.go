package record_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Any line that is taken can be written again, says the same then, and was
// JSON in the eyes of the standard library.
func FuzzDecode(f *testing.F) {
	f.Add(record.AppendJSON(nil, typical()))
	f.Add([]byte(`{"id":2,"status":200}`))
	f.Add([]byte(`{"id":"a","body":"/w==","body_encoding":"base64","meta":"x"}`))
	f.Add([]byte("{\"id\":\"a\",\"body\":\t {\t\t\t},\"body_encoding\":\"json-folded\"}"))
	f.Add([]byte(`{"id":"a","waits_ms":{"queue":1e999},"tries":[{"at":"2026-01-01T00:00:00Z"}],"headers":{"a":[]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, headErr := record.ReadHead(line)
		r, err := record.Decode(line)
		if err != nil {
			return
		}
		if !json.Valid(line) {
			t.Fatalf("%q is not JSON", line)
		}
		if headErr != nil || string(h.ID) != r.ID || h.Key != r.Key || h.Hash != r.Hash || h.OK != r.OK || h.Status != r.Status {
			t.Fatalf("head %+v %v of %q", h, headErr, line)
		}
		again := record.AppendJSON(nil, r)
		checkLine(t, again)
		r2, err := record.Decode(again)
		if err != nil {
			t.Fatalf("%v\n%q\n%q", err, line, again)
		}
		if r2.ID != r.ID || r2.Key != r.Key || r2.Hash != r.Hash || r2.OK != r.OK || r.BodyFile == "" && !bytes.Equal(r2.Body, r.Body) {
			t.Fatalf("%q became %q", line, again)
		}
	})
}

// The validator agrees with encoding/json about every body.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.0e+1,true,false,null,"\u00e9\\"]}`, "[\n\t1,\r\n2]", `{"a":"\ud800"}`, `[01]`, `[1.]`, `{"a"}`, `[tru]`, "[\"\x7f\"]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		line := record.AppendJSON(nil, &record.Record{ID: "x", Body: body})
		checkLine(t, line)
		r, err := record.Decode(line)
		if err != nil || !bytes.Equal(r.Body, body) {
			t.Fatalf("%q came back as %q, %v", body, r.Body, err)
		}
		trimmed := bytes.Trim(body, " \t\r\n")
		container := len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
		want := container && json.Valid(body) && utf8.Valid(body)
		if got := r.Encoding == record.JSON || r.Encoding == record.JSONFolded; body != nil && got != want && len(body) < 500 {
			t.Fatalf("%q is %s", body, r.Encoding)
		}
	})
}
