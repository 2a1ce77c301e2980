package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func foldLine(id, body string) string {
	return string(record.AppendJSON(nil, &record.Record{ID: id, Key: record.Sum(id), Body: []byte(body), Run: "r"}))
}

// runResults runs "mete results args…".
func runResults(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	c := newResultsCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), errs.String(), err
}

// TestResultsScripts runs testdata/results. In a script, "results CODE args…"
// wants that exit code; "< FILE" at its end is standard input. "torn FILE N"
// cuts off N bytes.
func TestResultsScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "results"),
		Setup: func(e *testscript.Env) error {
			return os.Mkdir(filepath.Join(e.WorkDir, "new"), 0o777)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"results": scriptResults,
			"torn": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				text := ts.ReadFile(args[0])
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text[:len(text)-n]), 0o666))
			},
		},
	})
}

func scriptResults(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: results CODE args… [< FILE]")
	}
	args = args[1:]
	stdin := ""
	if n := len(args); n > 2 && args[n-2] == "<" {
		stdin = ts.ReadFile(args[n-1])
		args = args[:n-2]
	}
	c := newResultsCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(ts.Stdout())
	c.SetErr(ts.Stderr())
	var abs []string
	for _, a := range args {
		if strings.HasSuffix(a, ".jsonl") || strings.HasPrefix(a, "new/") || strings.HasSuffix(a, ".csv") {
			a = ts.MkAbs(a)
		}
		abs = append(abs, a)
	}
	c.SetArgs(abs)
	got := exitOK
	if err := c.Execute(); err != nil {
		got = exitUsage
		if e, ok := errors.AsType[*exitError](err); ok {
			got = e.code
		}
		if text := strings.ReplaceAll(err.Error(), ts.MkAbs(".")+"/", ""); text != "" {
			ts.Stderr().Write([]byte("mete: " + text + "\n"))
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func TestResultsRefuse(t *testing.T) {
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
		{"fold " + in + " --overwrite", "--overwrite goes with -o FILE"},
		{"fold " + in + " --overwrite -o " + in, "is the input"},
		{"join " + in + " --input " + out + " --overwrite -o " + out, "is the input"},
		{"fold " + in + " --overwrite -o " + dir, "is not a regular file"},
		{"fold " + in + " -o " + dir + "/none/out.jsonl", "there is no folder"},
		{"fold " + dir + "/none.jsonl", "no such file"},
		{"fold " + dir, "is a directory"},
		{"fold " + diary, "diary.txt:1: not a record of mete"},
		{"fold " + bad, "bad.jsonl:2: not a record of mete"},
		{"fold " + bad + " --overwrite -o " + out, "bad.jsonl:2: not a record of mete"},
		{"stats " + bad, "bad.jsonl:2: not a record of mete"},
		{"csv " + bad, "bad.jsonl:2: not a record of mete"},
		{"filter " + bad + " --failed", "bad.jsonl:2: not a record of mete"},
		{"order " + bad, "correct or remove the line, or add --skip-bad"},
		{"filter", "results filter: name a result file"},
		{"join", "name a result file"}, {"csv", "name a result file"}, {"order", "name a result file"}, {"stats", "name a result file"},
		{"join - - ", "- is named twice"},
		{"join - --input -", "- is named twice"},
		{"sort", "unknown command"},
	} {
		if _, _, err := runResults("", strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
	if b, _ := os.ReadFile(out); string(b) != "precious" {
		t.Errorf("the output now holds %q", b)
	}
	if names, _ := os.ReadDir(dir); len(names) != 4 {
		t.Errorf("left behind: %q", names)
	}
	if _, _, err := runResults("", "fold", in, "--overwrite", "-o", out); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(out); string(b) != a {
		t.Errorf("--overwrite wrote %q", b)
	}
}

// A link to the output stays one, and the file keeps its permissions.
func TestResultsOverwriteLink(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	a := foldLine("a", "1")
	if err := errors.Join(os.WriteFile(path("in"), []byte(a), 0o666), os.WriteFile(path("real"), nil, 0o640), os.Symlink("real", path("link"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := runResults("", "fold", path("in"), "-o", path("link"), "--overwrite"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path("real"))
	if err != nil || info.Mode().Perm() != 0o640 || info.Size() != int64(len(a)) {
		t.Errorf("%v, %v", info, err)
	}
	if to, err := os.Readlink(path("link")); err != nil || to != "real" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

func TestResultsHelpTeaches(t *testing.T) {
	for _, c := range newResultsCommand().Commands() {
		stdout, _, err := runResults("", c.Name(), "--help")
		if n := strings.Count(stdout, "  mete results "); err != nil || n < 3 {
			t.Errorf("%s: %d examples, %v\n%s", c.Name(), n, err, stdout)
		}
		for l := range strings.Lines(stdout) {
			if len([]rune(l)) > 101 {
				t.Errorf("%s: a line of %d columns: %s", c.Name(), len([]rune(l)), l)
			}
		}
	}
	if stdout, _, err := runResults(""); err != nil || !strings.Contains(stdout, "Exit codes: 0 done, 2") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

// TestResultsProgram is the program for TestResultsPipe.
func TestResultsProgram(t *testing.T) {
	args := os.Getenv("METE_TEST_RESULTS")
	if args == "" {
		return
	}
	os.Args = append([]string{"mete", "results"}, strings.Fields(args)...)
	os.Exit(run())
}

// A reader that goes away is no error: the program ends quietly, with the code
// of a broken pipe.
func TestResultsPipe(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	var all strings.Builder
	for i := range 5000 {
		all.WriteString(foldLine(strconv.Itoa(i), strings.Repeat("long ", 50)))
	}
	if err := os.WriteFile(in, []byte(all.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"fold " + in, "filter --failed " + in, "csv " + in + " --columns id,body", "order --by id " + in, "join " + in} {
		for _, trap := range []string{"", "trap '' PIPE; "} {
			var stdout, stderr bytes.Buffer
			c := exec.Command("bash", "-c", trap+`"$0" -test.run='^TestResultsProgram$' | head -1; exit ${PIPESTATUS[0]}`, os.Args[0])
			c.Env = append(os.Environ(), "METE_TEST_RESULTS="+args)
			c.Stdout, c.Stderr = &stdout, &stderr
			err := c.Run()
			e, ok := errors.AsType[*exec.ExitError](err)
			text := strings.TrimSpace(stderr.String())
			if !ok || e.ExitCode() != 141 || strings.Count(stdout.String(), "\n") != 1 || text != "" && !strings.HasPrefix(text, "mete: joined") {
				t.Errorf("%s%s: %v, %q, %.100q", trap, args, err, text, stdout.String())
			}
		}
	}
}

func TestResultsDrawing(t *testing.T) {
	for _, tt := range []struct {
		env   map[string]string
		width int
		ascii bool
	}{
		{nil, 80, false},
		{map[string]string{"COLUMNS": "60"}, 60, false},
		{map[string]string{"COLUMNS": "wide", "LANG": "C"}, 80, true},
	} {
		width, ascii := drawing(&bytes.Buffer{}, func(key string) string { return tt.env[key] })
		if width != tt.width || ascii != tt.ascii {
			t.Errorf("%v: %d columns, ASCII %v", tt.env, width, ascii)
		}
	}
}

// A signal that ends the program in the middle takes the unfinished file away.
func TestResultsSignal(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestResultsProgram$")
	c.Env = append(os.Environ(), "METE_TEST_RESULTS=filter - --ok -o "+filepath.Join(dir, "out.jsonl"))
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	begun := func() bool {
		names, err := os.ReadDir(dir)
		return err == nil && len(names) == 1
	}
	// The file is there a moment before the handler is; a filter that has
	// taken a first write of this size is behind both.
	if _, err := stdin.Write(bytes.Repeat([]byte("\n"), 1<<20)); err != nil || !begun() {
		c.Process.Kill()
		t.Fatalf("%v, begun %v", err, begun())
	}
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 143 || begun() {
		t.Errorf("exit code %d, left behind: %v", code, begun())
	}
}
