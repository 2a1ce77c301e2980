package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// TestMain makes the test binary the program too, under the name mete.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // a second per process otherwise
	testscript.Main(m, map[string]func(){"mete": main})
}

// TestScript meets the program as its users do. Each script has a stub of its
// own at $STUB and, beside the usual commands,
//
//	exits CODE mete …    runs a program, which must end with this exit code
//	audit EXPR           a jq expression over the stub's audit is true
//	holds FILE EXPR      the same over the array of FILE's JSON lines
//	stub FAULT           changes the stub: {"latency":"2s"}
//	stub reset           clears its audit
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Setup:               setupScript,
		RequireExplicitExec: true,
		ContinueOnError:     true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "audit": cmdAudit, "holds": cmdHolds, "stub": cmdStub,
		},
	})
}

type stubKey struct{}

func setupScript(env *testscript.Env) error {
	s := stub.New(stub.Config{})
	if err := s.Start(); err != nil {
		return err
	}
	env.Defer(func() { s.Close() })
	env.Values[stubKey{}] = s
	env.Setenv("STUB", s.URL())
	env.Setenv("STUBHOST", strings.TrimPrefix(s.URL(), "http://"))
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
	env.Setenv("GORACE", os.Getenv("GORACE"))
	// The files of a script may name the stub.
	return filepath.WalkDir(env.WorkDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = []byte(strings.NewReplacer("STUB", s.URL(), `\r`, "\r", `\t`, "\t", "BOM", "\ufeff").Replace(string(text)))
		return os.WriteFile(path, text, 0o644)
	})
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func cmdAudit(ts *testscript.TestScript, neg bool, args []string) {
	text, err := json.Marshal(ts.Value(stubKey{}).(*stub.Server).Audit())
	ts.Check(err)
	var audit any
	ts.Check(json.Unmarshal(text, &audit))
	check(ts, neg, audit, strings.Join(args, " "))
}

func cmdHolds(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: holds FILE EXPR")
	}
	list := []any{}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	for {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			break
		}
		ts.Check(err)
		list = append(list, v)
	}
	check(ts, neg, list, args[1])
}

func check(ts *testscript.TestScript, neg bool, v any, expr string) {
	q, err := gojq.Parse(expr)
	ts.Check(err)
	got, _ := q.RunWithContext(context.Background(), v).Next()
	if got != !neg {
		text, _ := json.Marshal(v)
		ts.Fatalf("%s is %v of\n%s", expr, got, text)
	}
}

func cmdStub(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(stubKey{}).(*stub.Server)
	if args[0] == "reset" {
		s.Reset()
		return
	}
	f, err := stub.ParseFault([]byte(strings.Join(args, " ")))
	ts.Check(err)
	ts.Check(s.SetFault(f))
}

// TestFlagsInOneGroup keeps --help complete: each flag that can be used stands
// in one group.
func TestFlagsInOneGroup(t *testing.T) {
	c := newRunCommand()
	c.InitDefaultHelpFlag()
	groups := map[string]int{}
	for _, g := range runGroups {
		for _, name := range g.flags {
			groups[name]++
			if f := c.Flags().Lookup(name); f == nil || f.Hidden {
				t.Errorf("--help lists --%s, which cannot be used", name)
			}
		}
	}
	for _, name := range runCommon {
		if groups[name] != 1 {
			t.Errorf("-h lists --%s, --help does so %d times", name, groups[name])
		}
	}
	for _, line := range strings.Split(c.Flags().FlagUsages(), "\n") {
		_, rest, ok := strings.Cut(line, "--")
		if name, _, _ := strings.Cut(rest, " "); ok && groups[name] != 1 {
			t.Errorf("--%s is in %d groups of --help", name, groups[name])
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"run", "plan", "config", "results", "rate", "retry"}
	for _, tt := range []struct{ word, want string }{
		{"rnu", "run"}, {"rat", "rate"}, {"confg", "config"}, {"result", "results"},
		{"reslts", "results"}, {"retyr", "retry"}, {"x", ""}, {"frobnicate", ""}, {"", ""},
	} {
		if got := nearest(tt.word, names); got != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
	if fmt.Sprint(edits("ab", "ba"), edits("", "abc"), edits("kitten", "sitting")) != "1 3 3" {
		t.Error("edits")
	}
}
