package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func TestRun(t *testing.T) {
	f := parse(t, `version: 1
run:
  duplicate_ids: suffix
  on_change: rerun
  fsync: always
  drain_timeout: 1m30s
  max_line: 64KiB
  allow_files: true
  idempotency_key: off
`)
	want := config.Run{
		DuplicateIDs: "suffix", OnChange: "rerun", Fsync: "always",
		DrainTimeout: 90 * time.Second, MaxLine: 64 << 10, AllowFiles: true,
	}
	if f.Run != want {
		t.Errorf("got %+v, want %+v", f.Run, want)
	}
	again := parse(t, yamlOf(t, f.Values(), true))
	if again.Run != want {
		t.Errorf("shown and read again it is %+v", again.Run)
	}
	silent := parse(t, "version: 1\nproviders: {a: {url: https://x.example}}\n")
	if silent.Run != config.Empty().Run || silent.Run.MaxLine != 16<<20 {
		t.Errorf("a silent file says %+v", silent.Run)
	}
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"fsync: sometimes", `f:3:10: fsync must be 1s, always or never, not "sometimes"`},
		{"duplicate_ids: last", `f:3:18: duplicate_ids must be fail, suffix or skip, not "last"`},
		{"on_change: ${SECRET}", `f:3:14: on_change must be written out`},
		{"drain_timeout: 0s", `f:3:18: drain_timeout must be longer than 0`},
		{"drain_timeout: 5", `f:3:18: drain_timeout needs a unit: 5ms, 5s, 5m or 5h`},
		{"max_line: 0", `f:3:13: max_line must be from 1 byte to 1GiB`},
		{"max_line: 2GiB", `f:3:13: max_line must be from 1 byte to 1GiB`},
		{"max_line: 16megs", `f:3:13: max_line must be a size, not "16megs": write it as in 16MiB`},
		{"max_line: [1]", `f:3:13: max_line must be one value, not a list`},
		{"allow_files: yes", `f:3:16: allow_files must be true or false, not "yes"`},
		{"idempotency_key: a b", `f:3:20: "a b" cannot be the name of a header`},
		{"fsynk: 1s", `f:3:3: unknown key "fsynk" in run (did you mean "fsync"?)`},
		{"attempts: 1", `f:3:3: unknown key "attempts" in run (it belongs in retry)`},
	} {
		_, err := config.Parse("f", []byte("version: 1\nrun:\n  "+c.line+"\n"), testEnv)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"version: 1\nrun: 5\n":    "run must be a mapping",
		"version: 1\nfsync: 1s\n": `unknown key "fsync" (it belongs in run)`,
		"version: 1\n":            "providers is missing",
	} {
		if _, err := config.Parse("f", []byte(text), testEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
