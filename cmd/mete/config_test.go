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
		{[]string{"chek"}, "mete: unknown command \"chek\": did you mean mete config check?\n"},
		{[]string{"frobnicate"}, "mete: unknown command \"frobnicate\": mete config alone lists them\n"},
		{[]string{"--effective"}, "mete: unknown flag --effective: mete config -h lists them\n"},
		{[]string{"show", "--efective"}, "mete: unknown flag --efective: did you mean --effective?\n"},
		{[]string{"show", "--format", "xml"}, "mete: --format must be yaml or json, not \"xml\"\n"},
		{[]string{"schema", "x"}, "mete: unknown command \"x\" for \"mete config schema\"\n"},
		{[]string{"check", "--format", "xml"}, "mete: --format must be text or json, not \"xml\"\n"},
		{[]string{"check", "--latency", "0s"}, "mete: --latency 0s: want more than 0, as in 800ms or 2s\n"},
		{[]string{"check", "--latency", "2"}, "mete: --latency 2: want a time, as in 500ms, 30s or 2h\n"},
		{[]string{"check", "a", "b"}, "mete: accepts at most 1 arg(s), received 2\n"},
		{[]string{"check", filepath.Join("no", "such")}, "no/such: cannot be read: no such file or directory\n1 error; nothing was started\n"},
		{[]string{"init"}, "mete: mete.yaml exists: name another file, or replace it with --force\n"},
		{[]string{"init", "x.yaml", "--rate", "50"}, "mete: not a rate: \"50\": say per what: 50/s, 50/m, 50/h, 50/d or 50/15s\n"},
		{[]string{"init", "x.yaml", "--url", "ftp://x"}, "mete: the url must begin with https:// or http://\n"},
	} {
		stdout, stderr, code := runConfig(c.args...)
		if stdout != "" || stderr != c.want || code != exitUsage {
			t.Errorf("%v: got %q, %q, exit %d; want %q", c.args, stdout, stderr, code, c.want)
		}
	}
	if _, err := os.Stat("x.yaml"); err == nil {
		t.Error("wrote a file in spite of the mistake")
	}
}

func TestConfigCheckLatency(t *testing.T) {
	inFolder(t, "version: 1\nproviders:\n  a:\n    url: https://a.example\n    rate: 50/s\n    concurrency: 16\n")
	want := "mete.yaml:6:18: warning: concurrency 16 is too low for 50/s of a: 50/s x 2s needs 100 in flight"
	stdout, stderr, code := runConfig("check", "--latency", "2s")
	if stdout != "mete.yaml: ok, 1 provider, 1 warning\n" || !strings.HasPrefix(stderr, want) || code != exitOK {
		t.Errorf("got %q, %q, exit %d", stdout, stderr, code)
	}
	stdout, _, code = runConfig("check", "--latency", "2s", "--format", "json")
	if !strings.Contains(stdout, "16 is too low") || code != exitOK {
		t.Errorf("got %q, exit %d", stdout, code)
	}
	if stdout, stderr, _ = runConfig("check", "--latency", "200ms"); stdout != "mete.yaml: ok, 1 provider\n" || stderr != "" {
		t.Errorf("got %q, %q", stdout, stderr)
	}
}

// What is a default is shown as one: jhurliman/node-rate-limiter#38 is of a
// burst that nobody saw.
func TestConfigShow(t *testing.T) {
	t.Setenv("METE_TEST_KEY", "sk-do-not-show")
	t.Setenv("XDG_STATE_HOME", "/states")
	inFolder(t, goodConfig)
	stdout, stderr, code := runConfig("show")
	want := `version: 1
providers:
  a:
    url: https://a.example
    auth:
      header: Authorization
      value: "***"
    limits:
      - requests: 50/s
  b:
    url: https://b.example
`
	if stdout != want || stderr != "" || code != exitOK {
		t.Errorf("got %s, %q, exit %d", stdout, stderr, code)
	}
	stdout, _, code = runConfig("show", "--effective")
	for _, line := range []string{
		"state: /states/mete # default", "value: \"***\" # mete.yaml:5 ${METE_TEST_KEY}",
		"- requests: 50/s # mete.yaml:6", "burst: 1 # default", "margin: 6.666666ms # default", "limits: [] # default",
	} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), line) || code != exitOK {
			t.Errorf("exit %d, lacks %q:\n%s", code, line, stdout)
		}
	}
	stdout, _, _ = runConfig("show", "--effective", "--format", "json")
	var got struct {
		Config struct {
			Providers map[string]struct{ Concurrency int }
		}
		Origins map[string]string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Config.Providers["b"].Concurrency != 16 || got.Origins["providers.a.limits[0].requests"] != "mete.yaml:6" {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(stdout, "sk-do") {
		t.Error("shows a secret")
	}
}

func TestConfigSchema(t *testing.T) {
	stdout, stderr, code := runConfig("schema")
	var schema struct {
		Schema string         `json:"$schema"`
		Defs   map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(stdout), &schema); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(schema.Schema, "2020-12") || schema.Defs["provider"] == nil || stderr != "" || code != exitOK {
		t.Errorf("got %+v, %q, exit %d", schema, stderr, code)
	}
}

// A file written by init is accepted as it is; nothing is replaced or left over.
func TestConfigInit(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, args := range [][]string{
		nil,
		{"--force"},
		{"--force", "--provider", "geo", "--url", "http://127.0.0.1:7070/v1", "--rate", "50/s", "--rate", "1000/h", "-c", "20"},
	} {
		if _, stderr, code := runConfig(append([]string{"init"}, args...)...); code != exitOK || !strings.HasPrefix(stderr, "wrote mete.yaml;") {
			t.Fatalf("%v: got %q, exit %d", args, stderr, code)
		}
		if stdout, stderr, _ := runConfig("check"); stdout != "mete.yaml: ok, 1 provider\n" || stderr != "" {
			t.Errorf("%d: check says %q, %q", i, stdout, stderr)
		}
		info, err := os.Stat("mete.yaml")
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%v, %v", info, err)
		}
	}
	stdout, _, _ := runConfig("show")
	for _, want := range []string{"  geo:\n", "url: http://127.0.0.1:7070/v1\n", "concurrency: 20\n", "- requests: 50/s\n", "- requests: 1000/h\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("lacks %q:\n%s", want, stdout)
		}
	}
	before, _ := os.ReadFile("mete.yaml")
	if _, _, code := runConfig("init"); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if after, _ := os.ReadFile("mete.yaml"); string(after) != string(before) {
		t.Error("replaced the file without --force")
	}
	if stdout, stderr, code := runConfig("init", "-"); !strings.Contains(stdout, "version: 1") || stderr != "" || code != exitOK {
		t.Errorf("got %q, %q, exit %d", stdout, stderr, code)
	}
	if _, _, code := runConfig("init", "no/such/folder.yaml"); code != exitIO {
		t.Errorf("exit %d", code)
	}
	if files, _ := filepath.Glob("*"); len(files) != 1 {
		t.Errorf("left over: %v", files)
	}
	if hidden, _ := filepath.Glob(".*"); len(hidden) != 0 {
		t.Errorf("left over: %v", hidden)
	}
}

func TestConfigHelp(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"check", "${API_KEY}"}, {"show", "# default"}, {"schema", "2020-12"}, {"init", "--force"},
	} {
		stdout, _, code := runConfig(c.command, "--help")
		_, examples, _ := strings.Cut(stdout, "Examples:")
		examples, _, _ = strings.Cut(examples, "Flags:")
		if n := strings.Count(examples, "mete.yaml") + strings.Count(examples, "mete config "+c.command); !strings.Contains(stdout, c.want) || n < 3 || code != exitOK {
			t.Errorf("want three examples and %q, exit 0; got exit %d:\n%s", c.want, code, stdout)
		}
	}
}
