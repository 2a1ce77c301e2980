package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runConfig runs mete config with args and returns its output and exit code.
func runConfig(args ...string) (stdout, stderr string, code int) {
	var out, errOut bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"config"}, args...))
	root.SetOut(&out)
	root.SetErr(&errOut)
	err := root.Execute()
	code = exitOK
	if err != nil {
		code = exitUsage
		if e, ok := errors.AsType[*exitError](err); ok {
			code = e.code
			err = e.err
		}
		if err != nil {
			errOut.WriteString("mete: " + err.Error() + "\n")
		}
	}
	return out.String(), errOut.String(), code
}

// inFolder changes to a new folder with a mete.yaml of the given text.
func inFolder(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mete.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const goodConfig = `version: 1
providers:
  a:
    url: https://a.example
    auth: {header: Authorization, value: "Bearer ${METE_TEST_KEY}"}
    rate: 50/s
  b: {url: https://b.example}
`

func TestConfigCheck(t *testing.T) {
	t.Setenv("METE_TEST_KEY", "sk-do-not-show")
	inFolder(t, goodConfig)
	stdout, stderr, code := runConfig("check")
	if stdout != "mete.yaml: ok, 2 providers\n" || stderr != "" || code != exitOK {
		t.Errorf("got %q, %q, %d", stdout, stderr, code)
	}
}

func TestConfigCheckWarns(t *testing.T) {
	inFolder(t, "version: 1\nproviders:\n  a:\n    url: https://a.example\n    rate: 0\n")
	stdout, stderr, code := runConfig("check", "mete.yaml")
	want := "mete.yaml:5:11: warning: a rate of 0 blocks a: nothing will be sent; remove it for no limit\n"
	if stdout != "mete.yaml: ok, 1 provider, 1 warning\n" || !strings.HasPrefix(stderr, want) || code != exitOK {
		t.Errorf("got %q, %q, %d", stdout, stderr, code)
	}
}

func TestConfigCheckFails(t *testing.T) {
	inFolder(t, strings.Replace(goodConfig, "    rate: 50/s\n", "    rate: 50\n    burstt: 5\n", 1))
	stdout, stderr, code := runConfig("check")
	want := `mete.yaml:5:42: the variable METE_TEST_KEY is not set: set it, or give a default as in ${METE_TEST_KEY:-default}
     4 |     url: https://a.example
>    5 |     auth: {header: Authorization, value: "Bearer ${METE_TEST_KEY}"}
                                                  ^
mete.yaml:6:11: not a rate: "50": say per what: 50/s, 50/m, 50/h, 50/d or 50/15s
     5 |     auth: {header: Authorization, value: "Bearer ${METE_TEST_KEY}"}
>    6 |     rate: 50
                   ^
mete.yaml:7:5: unknown key "burstt" in providers.a (did you mean "burst"?)
     6 |     rate: 50
>    7 |     burstt: 5
             ^
3 errors; nothing was started
`
	if stdout != "" || stderr != want || code != exitUsage {
		t.Errorf("got %q, exit %d\n%s\nwant\n%s", stdout, code, stderr, want)
	}
}

func TestConfigCheckJSON(t *testing.T) {
	inFolder(t, "version: 1\nproviders:\n  a:\n    url: https://a.example\n    rate: -1\n")
	type answer struct {
		File      string
		OK        bool
		Providers int
		Errors    []struct {
			File      string
			Line, Col int
			Message   string
		}
		Warnings []any
	}
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{"mete.yaml", 5, "rate must not be negative"},
		{"missing.yaml", 0, "cannot be read: no such file or directory"},
	} {
		stdout, stderr, code := runConfig("check", "--format", "json", c.file)
		var got answer
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(err, stdout)
		}
		if stderr != "" || code != exitUsage || got.OK || len(got.Errors) != 1 || got.Warnings == nil {
			t.Fatalf("got %+v, %q, exit %d", got, stderr, code)
		}
		if e := got.Errors[0]; e.File != c.file || e.Line != c.line || e.Message != c.want {
			t.Errorf("got %+v", e)
		}
	}
}

func TestConfigUsage(t *testing.T) {
	inFolder(t, goodConfig)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "mete: config show is not available yet\n"},
		{[]string{"show", "--effective"}, "mete: config show is not available yet\n"},
		{[]string{"schema"}, "mete: config schema is not available yet\n"},
		{[]string{"chek"}, "mete: unknown command \"chek\" for mete config: write mete config check [FILE]\n"},
		{[]string{"--effective"}, "mete: unknown flag: --effective\n"},
		{[]string{"check", "x", "--effective"}, "mete: unknown flag: --effective\n"},
		{[]string{"check", "--format", "xml"}, "mete: --format must be text or json, not \"xml\"\n"},
		{[]string{"check", "a", "b"}, "mete: accepts at most 1 arg(s), received 2\n"},
		{[]string{"check", filepath.Join("no", "such")}, "no/such: cannot be read: no such file or directory\n1 error; nothing was started\n"},
	} {
		stdout, stderr, code := runConfig(c.args...)
		if stdout != "" || stderr != c.want || code != exitUsage {
			t.Errorf("%v: got %q, %q, exit %d; want %q", c.args, stdout, stderr, code, c.want)
		}
	}
}

func TestConfigHelp(t *testing.T) {
	stdout, _, code := runConfig("check", "--help")
	for _, want := range []string{"mete config check\n", "--format json", "${API_KEY}", "exit code is 0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help lacks %q:\n%s", want, stdout)
		}
	}
	if n := strings.Count(stdout, "mete config check"); n < 4 || code != exitOK {
		t.Errorf("want three examples, exit 0; got exit %d:\n%s", code, stdout)
	}
}
