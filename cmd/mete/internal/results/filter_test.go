package results

import (
	"io"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	lines := []string{
		`{"id":"a","ok":true,"status":200,"body":{"n":12345678901234567890,"l":[{"x":1},{"x":2}]}}`,
		`{"id":"b","ok":false,"status":429,"error":{"kind":"rate_limited"}}`,
		`{"id":"c","ok":false,"status":503,"error":{"kind":"http_5xx"}}`,
		`{"id":"d","ok":false,"status":0,"error":{"kind":"timeout"}}`,
		`{"id":"e","ok":false,"status":null,"error":null}`,
	}
	in := strings.Join(lines, "\n")
	for _, tt := range []struct {
		name string
		c    Condition
		want string
	}{
		{"ok", Condition{OK: true}, "a"},
		{"failed", Condition{Failed: true}, "bcde"},
		{"status", Condition{Statuses: "429, 5xx"}, "bc"},
		{"range", Condition{Statuses: "200-429"}, "ab"},
		{"no answer", Condition{Statuses: "0"}, "de"},
		{"kind", Condition{Kinds: "timeout,http_5xx"}, "cd"},
		{"both hold", Condition{Kinds: "timeout,http_5xx", Statuses: "5XX", JQ: `.id == "c"`}, "c"},
		{"jq", Condition{JQ: ".status > 400"}, "bc"},
		{"one output of many", Condition{JQ: ".body.l[]?.x == 2"}, "a"},
		{"no output", Condition{JQ: "select(.ok)"}, "a"},
		{"zero and empty hold", Condition{JQ: `0, ""`}, "abcde"},
		{"null does not", Condition{JQ: ".nothing"}, ""},
		{"large integers are exact", Condition{JQ: ".body.n == 12345678901234567890"}, "a"},
		{"large integers differ", Condition{JQ: ".body.n == 12345678901234567891"}, ""},
		{"no environment", Condition{JQ: "env | length > 0"}, ""},
	} {
		out, _, err := run(t, t.TempDir(), func(in *Input, w io.Writer) error { return Filter(in, tt.c, w) }, in)
		var want strings.Builder
		for _, l := range lines {
			if strings.Contains(tt.want, l[7:8]) {
				want.WriteString(l + "\n")
			}
		}
		if err != nil || out != want.String() {
			t.Errorf("%s: %v\n%s", tt.name, err, out)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	in := `{"id":1,"n":1}` + "\n" + `{"id":2,"n":{}}` + "\n"
	for _, tt := range []struct {
		c    Condition
		want string
	}{
		{Condition{}, "say which records to keep: --failed"},
		{Condition{OK: true, Failed: true}, "no record is both"},
		{Condition{Statuses: "429,six"}, `--status "429,six": "six" is not a status; write 429`},
		{Condition{Statuses: "42"}, `"42" is not a status`},
		{Condition{Statuses: "500-400"}, `"500-400" is not a status`},
		{Condition{Statuses: "200,"}, `"" is not a status`},
		{Condition{Kinds: "time-out"}, `there is no kind "time-out"; there are invalid_row, `},
		{Condition{JQ: ".a ||"}, "--jq: column 5: unexpected token \"|\"\n  .a ||\n      ^"},
		{Condition{JQ: "("}, "--jq: column 2: unexpected EOF\n  (\n   ^"},
		{Condition{JQ: `."é" | nope`}, "--jq: column 8: function not defined: nope/0\n  .\"é\" | nope\n         ^"},
		{Condition{JQ: ".a |\n\t$x"}, "--jq: line 2, column 2: variable not defined: $x\n   $x\n   ^"},
		{Condition{JQ: `"日本" ))`}, "--jq: column 6: unexpected token \")\"\n  \"日本\" ))\n         ^"},
		{Condition{JQ: ".n + 1"}, "/0:2: --jq: "},
		{Condition{JQ: "halt_error"}, "/0:1: --jq: halt error"},
		{Condition{JQ: "input"}, "--jq: input(s)/0 is not allowed\n  input"},
	} {
		_, _, err := run(t, t.TempDir(), func(in *Input, w io.Writer) error { return Filter(in, tt.c, w) }, in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v:\n%v\nwant %s", tt.c, err, tt.want)
		}
	}
}
