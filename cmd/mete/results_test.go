package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func foldLine(id, body string) string {
	return string(record.AppendJSON(nil, &record.Record{ID: id, Key: record.Sum(id), Body: []byte(body), Run: "r"}))
}

// results runs "mete results args…".
func results(args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	c := newResultsCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), errs.String(), err
}

func TestFold(t *testing.T) {
	a1, b1, c1 := foldLine("a", "1"), foldLine("b", "[1]"), foldLine("c", "1")
	a2, c2, a3 := foldLine("a", `{"x": 2}`), foldLine("c", strings.Repeat("long ", 5000)), foldLine("a", "3")
	for _, tt := range []struct{ name, in, want, notice string }{
		{"empty", "", "", ""},
		{"nothing to fold", a1 + b1, a1 + b1, ""},
		{"last wins, first place stays", a1 + b1 + a2 + c1 + c2 + a3, a3 + b1 + c2, ""},
		{"torn tail", a1 + b1 + a2[:50], a1 + b1, "left out 50 bytes of a torn record"},
		{"torn tail with a line feed", a1 + b1 + a2[:50] + "\n", a1 + b1, "left out 51 bytes"},
		{"only a torn record", a1[:50], "", "left out 50 bytes"},
		{"last line feed is missing", a1 + b1 + strings.TrimSuffix(a2, "\n"), a2 + b1, ""},
		{"blank lines", a1 + "\n \r\n" + b1 + "\n", a1 + b1, ""},
		{"other shapes of the same row", `{"id":"a","n":1}` + "\n" + a1 + `{"n":2, "id":"\u0061"}` + "\n" + b1, `{"n":2, "id":"\u0061"}` + "\n" + b1, ""},
		{"a number is not cut or rounded", "{\"id\":12345678901234567890,\"x\":1}\n{\"id\":12345678901234567891}\n{\"id\":12345678901234567890,\"x\":2.0}\n",
			"{\"id\":12345678901234567890,\"x\":2.0}\n{\"id\":12345678901234567891}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := filepath.Join(t.TempDir(), "in.jsonl")
			if err := os.WriteFile(in, []byte(tt.in), 0o666); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, err := results("fold", in)
			if err != nil || stdout != tt.want {
				t.Errorf("%v\ngot  %.300q\nwant %.300q", err, stdout, tt.want)
			}
			if (tt.notice == "") != (stderr == "") || !strings.Contains(stderr, tt.notice) {
				t.Errorf("stderr %q, want %q", stderr, tt.notice)
			}
			out := filepath.Join(filepath.Dir(in), "out.jsonl")
			if _, _, err := results("fold", in, "-o", out); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(out); string(b) != tt.want {
				t.Errorf("-o wrote %.300q", b)
			}
		})
	}
}

// Two rows whose ids have the same sum, or whose derived ids are the same by
// chance, stay two rows.
func TestFoldTellsRowsApart(t *testing.T) {
	r := record.Record{ID: "0123456789ab-0", Key: 1, Run: "r"}
	one := string(record.AppendJSON(nil, &r))
	r.Key = 2
	two := string(record.AppendJSON(nil, &r))
	in := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(one+two+one), 0o666); err != nil {
		t.Fatal(err)
	}
	if stdout, _, err := results("fold", in); err != nil || stdout != one+two {
		t.Errorf("%v, %s", err, stdout)
	}
}

func TestFoldAgainstMap(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 5000).Draw(t, "ids")
		var in strings.Builder
		last, order := map[int]string{}, []int{}
		for n, id := range ids {
			line := fmt.Sprintf("{\"id\":%d,\"n\":%d}\n", id, n)
			if _, ok := last[id]; !ok {
				order = append(order, id)
			}
			last[id] = line
			in.WriteString(line)
		}
		var want strings.Builder
		for _, id := range order {
			want.WriteString(last[id])
		}
		path := filepath.Join(dir, "in.jsonl")
		if err := os.WriteFile(path, []byte(in.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		if stdout, _, err := results("fold", path); err != nil || stdout != want.String() {
			t.Fatalf("%v: %d bytes, want %d", err, len(stdout), want.Len())
		}
	})
}

func TestFoldRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := foldLine("a", "1")
	in, out := write("in.jsonl", a), write("out.jsonl", "precious")
	bad := write("bad.jsonl", a+a[:30]+"\n"+a+a[:9])
	diary := write("diary.txt", "Dear diary")
	for _, tt := range []struct {
		args string
		want string
	}{
		{"fold", "name one result file"},
		{"fold " + in + " " + in, "name one result file"},
		{"fold " + in + " -o " + out, "out.jsonl exists: add --overwrite"},
		{"fold " + in + " --overwrite -o " + in, "is the input"},
		{"fold " + in + " -o " + dir + "/none/out.jsonl", "there is no folder"},
		{"fold " + dir + "/none.jsonl", "no such file"},
		{"fold " + dir, "not a regular file"},
		{"fold " + diary, "diary.txt:1: not a record of mete"},
		{"fold " + bad, "bad.jsonl:2: not a record of mete"},
		{"fold " + bad + " --overwrite -o " + out, "bad.jsonl:2: not a record of mete"},
		{"stats " + in + " --json", "results stats: not available yet"},
		{"filter", "not available yet"}, {"join", "not available yet"}, {"csv", "not available yet"}, {"order", "not available yet"},
		{"sort", "unknown command"},
	} {
		if _, _, err := results(strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
	if b, _ := os.ReadFile(out); string(b) != "precious" {
		t.Errorf("the output now holds %q", b)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*.tmp-*")); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	if _, _, err := results("fold", in, "--overwrite", "-o", out); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(out); string(b) != a {
		t.Errorf("--overwrite wrote %q", b)
	}
}

func TestResultsHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"fold", "--help"}} {
		stdout, _, err := results(args...)
		if err != nil || !strings.Contains(stdout, "mete results fold out.jsonl -o unique.jsonl") {
			t.Errorf("%q: %v\n%s", args, err, stdout)
		}
	}
}
