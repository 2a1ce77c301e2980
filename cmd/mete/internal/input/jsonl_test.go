package input

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Hand-made rows are checked one by one (NousResearch/hermes-agent#95322).
func TestOddRows(t *testing.T) {
	rows, bad := read(t, `{"url":123}
{"url":null}
[]
"x"
{}
{"url":"http://h/1","body":{"a":1}}
{"url":"http://h/2",}
{"url":"http://h/3","method":"get"}
`, Options{})
	if len(rows) != 2 || rows[0].Line != 6 || string(rows[0].Body) != `{"a":1}` || rows[0].Method != "POST" ||
		rows[1].Line != 8 || rows[1].Method != "GET" || rows[1].HasBody {
		t.Errorf("rows: %+v", rows)
	}
	want := []string{
		"stdin:1:8: url is a number: want a string",
		"stdin:2:8: url is null: leave the field out",
		"stdin:3:1: expected an object, found an array: one object per line",
		`stdin:4:1: expected an object, found '"'`,
		"stdin:5:1: url is missing",
		"stdin:7:21: expected a key in quotes, found '}'",
	}
	for i, e := range bad {
		if i >= len(want) || e.Error() != want[i] {
			t.Errorf("error %d: %v", i, e)
		}
	}
	if len(bad) != len(want) {
		t.Errorf("%d errors, want %d", len(bad), len(want))
	}
}

func TestBadRows(t *testing.T) {
	for _, test := range []struct {
		line, want string
		column     int
	}{
		{`{"URL":"http://h"}`, `unknown field "URL" (did you mean "url"?): put extras in "meta"`, 2},
		{`{"url":"http://h","boddy":1}`, `did you mean "body"?`, 19},
		{`{"url":"http://h","priority":1}`, `did you mean "lane"?`, 19},
		{`{"url":"http://h","Idempotency-Key":"x"}`, `did you mean "idempotency_key"?`, 19},
		{`{"url":"http://h","zzzzzz":1}`, `unknown field "zzzzzz": put extras in "meta"`, 19},
		{`{"url":"a","url":"http://h"}`, `field "url" is given twice`, 12},
		{`{"url":"http://h","\u0075rl":"http://h"}`, `field "url" is given twice`, 19},
		{`{"url":"http://h"} x`, "more text after the object", 20},
		{`{"url":"http://h"}{}`, "more text after the object", 19},
		{`{`, "the line ends where a key in quotes was expected: one whole object per line", 2},
		{`{"url":"http://h`, "the line ends where a closing quote", 17},
		{`{"url" "x"}`, "expected a colon", 8},
		{`{"url":}`, "expected a value, found '}'", 8},
		{`{'url':"x"}`, `expected a key in quotes, found '\''`, 2},
		{`{"url":"http://h","meta":NaN}`, "expected a value, found 'N'", 26},
		{`{"url":"http://h","meta":01}`, "not a JSON number", 26},
		{`{"url":"http://h","meta":1.}`, "not a JSON number", 26},
		{`{"url":"http://h","meta":.5}`, "expected a value", 26},
		{`{"url":"http://h","meta":-}`, "not a JSON number", 26},
		{`{"url":"http://h","meta":truee}`, "expected a comma or }", 30},
		{`{"url":"http://h","meta":[1,]}`, "expected a value", 29},
		{`{"url":"http://h","body":"\x"}`, "not an escape JSON knows", 27},
		{`{"url":"http://h","body":"\ud800"}`, "half of a surrogate pair", 27},
		{`{"url":"http://h","body":"\udc00\ud800"}`, "half of a surrogate pair", 27},
		{"{\"url\":\"http://h\",\"body\":\"a\tb\"}", "control character 0x09 in a string", 28},
		{"{\"url\":\"http://h\",\"body\":\"caf\xe9\"}", "not UTF-8", 30},
		{`{"url":"http://h","meta":` + strings.Repeat("[", 2000) + `}`, "nested more than 1000 deep", 1025},
		{`# {"url":"http://h"}`, "no comments", 1},

		{`{"url":"http://h","id":1.0}`, "id is not a whole number", 24},
		{`{"url":"http://h","id":1e3}`, "id is not a whole number", 24},
		{`{"url":"http://h","id":""}`, "id is empty", 24},
		{`{"url":"http://h","id":{}}`, "id is an object", 24},
		{`{"url":"http://h","id":true}`, "id is a boolean", 24},
		{`{"url":"http://h","id":"` + strings.Repeat("é", 129) + `"}`, "id has 258 bytes, more than 256", 24},
		{`{"url":"http://h","id":"a","custom_id":"a"}`, "exclude each other", 40},
		{`{"url":"http://h:99999/"}`, "port 99999 is out of range", 18},
		{`{"url":"http:\/\/h:99999/"}`, "port 99999 is out of range", 8},
		{`{"url":"http://h/a b"}`, "space in the URL", 19},
		{`{"url":""}`, "the URL is empty", 9},
		{`{"url":"h/x"}`, "did you mean https://h/x?", 9},
		{`{"url":"http://h","method":"GE T"}`, `not a method: "GE T"`, 28},
		{`{"url":"http://h","method":""}`, "method is empty", 28},
		{`{"url":"http://h","method":"connect"}`, "CONNECT", 28},
		{`{"url":"http://h","headers":[]}`, "headers is an array", 29},
		{`{"url":"http://h","headers":{"a":1}}`, `header "a" is a number`, 34},
		{`{"url":"http://h","headers":{"a":[["x"]]}}`, `header "a" is an array`, 35},
		{`{"url":"http://h","headers":{"a":[]}}`, "no value", 30},
		{`{"url":"http://h","headers":{"a b":"x"}}`, "not a header name", 30},
		{`{"url":"http://h","headers":{"a":"x\ny"}}`, "control character", 30},
		{`{"url":"http://h","headers":{"a":"x","A":"y"}}`, "header A is given twice", 38},
		{`{"url":"http://h","headers":{"Connection":"close"}}`, "Connection is refused", 30},
		{`{"url":"http://h","headers":{"transfer-encoding":"x"}}`, "Transfer-Encoding is refused", 30},
		{`{"url":"http://h","headers":{"content-length":"3"}}`, "follows from the body", 30},
		{`{"url":"http://h","headers":{"host":"a/b"}}`, "not a host", 30},
		{`{"url":"http://h","headers":{"host":["a","b"]}}`, "one value", 30},
		{`{"url":"http://h","headers":{"idempotency-key":"a"},"idempotency_key":"b"}`, "given twice", 30},
		{`{"url":"http://h","body":1}`, "body is a number", 26},
		{`{"url":"http://h","body":null}`, "body is null", 26},
		{`{"url":"http://h","body":"","body_base64":""}`, "body and body_base64 exclude each other", 43},
		{`{"url":"http://h","body_base64":"abc"}`, "not base64", 33},
		{`{"url":"http://h","body_base64":"QQ==\n"}`, "not base64", 33},
		{`{"url":"http://h","body_file":"x"}`, "needs \"run: {allow_files: true}\"", 31},
		{`{"url":"http://h","cost":1.5}`, "cost 1.5 is not a whole number", 26},
		{`{"url":"http://h","cost":-1}`, "cost -1 is not a whole number", 26},
		{`{"url":"http://h","cost":9223372036854775808}`, "not a whole number", 26},
		{`{"url":"http://h","cost":"1"}`, "cost is a string", 26},
		{`{"url":"http://h","cost":{"a":1,"a":2}}`, `unit "a" twice`, 33},
		{`{"url":"http://h","cost":{"a":[]}}`, "cost is an array", 31},
		{`{"url":"http://h","timeout":30}`, `timeout wants a unit: "30s"`, 29},
		{`{"url":"http://h","timeout":"30"}`, `timeout wants a unit: "30s"`, 29},
		{`{"url":"http://h","timeout":"-1s"}`, "not above zero", 29},
		{`{"url":"http://h","timeout":"soon"}`, "not a duration", 29},
		{`{"url":"http://h","timeout":{}}`, "timeout is an object", 29},
		{`{"url":"http://h","lane":7}`, "lane is a number", 26},
		{`{"url":"http://h","idempotency_key":"a\u0000"}`, "printable ASCII", 37},
	} {
		rows, bad := read(t, `{"url":"http://h/ok"}`+"\n"+test.line+"\n"+`{"url":"http://h/ok"}`, Options{})
		if len(rows) != 2 || len(bad) != 1 {
			t.Errorf("%.80s: %d rows and %d errors, want 2 and 1", test.line, len(rows), len(bad))
			continue
		}
		if e := bad[0]; !strings.Contains(e.Message, test.want) || e.Column != test.column || e.Line != 2 {
			t.Errorf("%.80s: %v, want %q at column %d", test.line, e, test.want, test.column)
		}
	}
}

func TestFields(t *testing.T) {
	row := one(t, `{"id":"a17","method":"put","url":"https://h/x?y","headers":{"accept":" text/plain ","X-Multi":["a","b"],"host":"other:81","Idempotency-Key":"k"},`+
		`"body":"hi","cost":{"tokens":812},"lane":"bulk","timeout":"1m30s","dedup_key":"d","provider":"p","meta": { "n":12345678901234567890, "h":"<&>" } }`, Options{})
	if row.ID != "a17" || !row.IDGiven || row.Method != "PUT" || row.Host != "other:81" || row.Lane != "bulk" || row.Provider != "p" ||
		row.Timeout != 90*time.Second || row.DedupKey != "d" || row.IdempotencyKey != "k" || !row.IdempotencyKeyGiven() || row.ContentType != "" {
		t.Errorf("%+v", row)
	}
	if want := map[string][]string{"Accept": {"text/plain"}, "X-Multi": {"a", "b"}}; !reflect.DeepEqual(map[string][]string(row.Header), want) {
		t.Errorf("headers %v", row.Header)
	}
	if !reflect.DeepEqual(row.Cost, map[string]int64{"tokens": 812}) {
		t.Errorf("cost %v", row.Cost)
	}
	if string(row.Meta) != `{ "n":12345678901234567890, "h":"<&>" }` {
		t.Errorf("meta %s", row.Meta)
	}
	if row := one(t, `{"custom_id":-12345678901234567890,"url":"http://h","cost":5,"meta":null}`, Options{}); row.ID != "-12345678901234567890" || row.Cost[""] != 5 || string(row.Meta) != "null" {
		t.Errorf("%+v", row)
	}
}

// Bodies keep their bytes, unlike through encoding/json.
func TestBodyBytes(t *testing.T) {
	for _, body := range []string{
		`{"a": 12345678901234567890,  "a":1e400, "b":"<>&\u2028\u003c", "c":[ ] }`, `[1 , 2]`, "{\"u\":\"\u2028\u00e9😀\"}", `{}`,
	} {
		row := one(t, `{"url":"http://h","body":`+body+`}`, Options{})
		if string(row.Body) != body || row.ContentType != "application/json" || row.Method != "POST" {
			t.Errorf("%s: %s %s %s", body, row.Method, row.ContentType, row.Body)
		}
	}
	for quoted, want := range map[string]string{
		`""`: "", `"\u0000\u001f"`: "\x00\x1f", `"a\"\\\/\b\f\n\r\t"`: "a\"\\/\b\f\n\r\t", `"\ud83d\ude00\u2028<>&"`: "😀\u2028<>&", "\"\u2028😀\"": "\u2028😀",
	} {
		row := one(t, `{"url":"http://h","body":`+quoted+`}`, Options{})
		if string(row.Body) != want || !row.HasBody || row.Method != "POST" || row.ContentType != "" {
			t.Errorf("%s: %q", quoted, row.Body)
		}
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	row := one(t, `{"url":"http://h","body_base64":"`+base64.StdEncoding.EncodeToString(all)+`"}`, Options{})
	if !bytes.Equal(row.Body, all) {
		t.Errorf("base64: %x", row.Body)
	}
	if row := one(t, `{"url":"http://h","headers":{"content-type":"x/y"},"body":{}}`, Options{}); row.ContentType != "" || row.Header.Get("Content-Type") != "x/y" {
		t.Errorf("own content type: %q %v", row.ContentType, row.Header)
	}
	// A string of the length of the line is decoded as encoding/json would.
	long := strings.Repeat(`x\n`, 100_000)
	var want string
	if err := json.Unmarshal([]byte(`"`+long+`"`), &want); err != nil {
		t.Fatal(err)
	}
	if row := one(t, `{"url":"http://h","body":"`+long+`"}`, Options{}); string(row.Body) != want || row.Size < len(want) {
		t.Errorf("%d bytes, size %d", len(row.Body), row.Size)
	}
}

func TestBodyFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(dir, "rows.jsonl")
	text := `{"url":"http://h","body_file":"a.bin"}
{"url":"http://h","body_file":"missing"}
{"url":"http://h","body_file":"."}
`
	if err := os.WriteFile(rows, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open([]string{rows}, nil, Options{AllowFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := drain(t, s)
	if len(good) != 1 || good[0].BodyFile != filepath.Join(dir, "a.bin") || good[0].BodySize != 5 || !good[0].HasBody || good[0].Body != nil || good[0].Method != "POST" {
		t.Errorf("%+v", good)
	}
	if len(bad) != 2 || !strings.Contains(bad[0].Message, "no such file") || !strings.Contains(bad[1].Message, "not a regular file") {
		t.Error(bad)
	}
}

func TestDetail(t *testing.T) {
	_, bad := read(t, `{"url":"http://h","boddy":1}`+"\n"+
		`{"url":"http://h","meta":"`+strings.Repeat("é", 300)+`","x":`+strings.Repeat("1", 300)+"}\n"+
		"{\"url\":\"http://h\",\t\x1b\"x\":1}", Options{})
	if len(bad) != 3 {
		t.Fatal(bad)
	}
	want := "     1 | {\"url\":\"http://h\",\"boddy\":1}\n" +
		"                           ^"
	if got := bad[0].Detail(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	lines := strings.Split(bad[1].Detail(), "\n")
	text := []rune(lines[0])
	if len(text) > 9+80 || text[len(lines[1])-1] != '"' || string(text[len(lines[1])-1:][:4]) != `"x":` {
		t.Errorf("%d characters\n%s", len(text), bad[1].Detail())
	}
	if got := bad[2].Detail(); strings.ContainsAny(got, "\x1b\t") {
		t.Errorf("a control character reaches the terminal: %q", got)
	}
}

func ExampleRowError() {
	s, err := Open(nil, strings.NewReader(`{"url":"https://geo.test/v1","boddy":{"q":"x"}}`), Options{})
	if err != nil {
		panic(err)
	}
	for _, err := range s.Rows() {
		fmt.Println(err)
		if bad, ok := err.(*RowError); ok {
			fmt.Println(bad.Detail())
		}
	}
	// Output:
	// stdin:1:30: unknown field "boddy" (did you mean "body"?): put extras in "meta"
	//      1 | {"url":"https://geo.test/v1","boddy":{"q":"x"}}
	//                                       ^
}
