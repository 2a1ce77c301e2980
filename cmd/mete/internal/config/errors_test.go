package config_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// secretValue is what every test takes for a secret; it must never be seen.
const secretValue = "sk-do-not-show"

func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"SECRET": secretValue,
		"LINES":  secretValue + "\nx: y",
		"EMPTY":  "",
		"FIVE":   "5",
		"RATE":   "50/s",
	}[name]
	return v, ok
}

// TestGolden compares everything that is said about a file with the text that
// a person has read and found clear.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			file, err := config.Parse(name, data, testEnv)
			if err != nil {
				got = err.Error() + "\n"
			} else {
				for _, w := range file.Warnings {
					got += w.Error() + "\n" + w.Source
				}
			}
			for _, secret := range []string{secretValue, "sk-literal", "hunter22", "abcdefg", "sk-live", "eral-key"} {
				if strings.Contains(got, secret) {
					t.Errorf("shows the secret %s:\n%s", secret, got)
				}
			}
			golden := strings.TrimSuffix(path, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestMisspelt: a misspelt or wrongly cased key was dropped and the default
// used instead, so that all clients shared one bucket (traefik/traefik#7129,
// traefik/traefik#6687).
func TestMisspelt(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"unknown", "version: 1\nproviders:\n  a:\n    url: https://x.example\n    rate: 50/s\n    burstt: 5\n",
			`f:6:5: unknown key "burstt" in providers.a (did you mean "burst"?)`},
		{"foreign", "version: 1\nproviders:\n  a:\n    url: https://x.example\n    IpStrategy: {}\n",
			`f:5:5: unknown key "IpStrategy" in providers.a (known here: url,`},
		{"case", "version: 1\nproviders:\n  a:\n    url: https://x.example\n    Concurrency: 5\n",
			`f:5:5: unknown key "Concurrency" in providers.a (did you mean "concurrency"?)`},
		{"hyphen", "version: 1\nproviders:\n  a:\n    url: https://x.example\n    max-wait: 5s\n",
			`f:5:5: unknown key "max-wait" in providers.a (did you mean "max_wait"?)`},
		{"place", "version: 1\nconcurrency: 5\nproviders: {a: {url: https://x.example}}\n",
			`f:2:1: unknown key "concurrency" (it belongs in a provider)`},
		{"tab", "version: 1\nproviders:\n\ta:\n", "f:3:1: a tab: YAML is indented with spaces"},
		{"twice", "version: 1\nproviders:\n  a:\n    url: https://x.example\n    rate: 5/s\n    rate: 50/s\n",
			`f:6:5: "rate" is already on line 5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := config.Parse("f", []byte(c.file), testEnv)
			if err == nil || file != nil {
				t.Fatalf("got %v, %v; want an error and no file", file, err)
			}
			if !strings.HasPrefix(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "1 error; nothing was started") {
				t.Errorf("got:\n%v\nwant it to begin with:\n%s", err, c.want)
			}
		})
	}
}

// TestNotYet: what a later mete will know is refused, never ignored.
func TestNotYet(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"store: {redis: x}", `f:1:1: "store" is not available yet`},
		{"clients: []", `f:1:1: "clients" is not available yet`},
		{"serve:", `f:1:1: "serve" is not available yet`},
	} {
		_, err := config.Parse("f", []byte(c.line+"\nversion: 1\nproviders: {a: {url: https://x.example}}\n"), testEnv)
		if err == nil || !strings.HasPrefix(err.Error(), c.want+"\n") {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
	for _, c := range []struct{ key, want string }{
		{"cache: {ttl: 30d}", `"cache" is not available yet`},
		{"lanes: {}", `"lanes" is not available yet`},
		{"hosts: [x]", `"hosts" is not available yet`},
	} {
		_, err := config.Parse("f", []byte("version: 1\nproviders: {a: {url: https://x.example, "+c.key+"}}\n"), testEnv)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "\n1 error;") {
			t.Errorf("%s: got %v, want %s", c.key, err, c.want)
		}
	}
}

func TestNoFile(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "mete.yaml"), testEnv)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	if all, ok := errors.AsType[config.Errors](err); !ok || len(all) != 1 || !strings.Contains(err.Error(), "cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"empty":    {"", "f:1:1: the file is empty"},
		"comment":  {"# nothing\n", "f:1:1: the file is empty"},
		"list":     {"- a\n", "f:1:1: the file must be a mapping"},
		"word":     {"hello\n", "f:1:1: the file must be a mapping"},
		"utf16":    {"\xff\xfev\x00", "f:1:1: the file is UTF-16"},
		"latin1":   {"version: 1\nx: \xe9t\xe9\n", "f:2:4: not UTF-8"},
		"nul":      {"version: 1\nx: \x00\n", "f:2:4: a NUL byte"},
		"deep":     {strings.Repeat("[", 50000), "f:1:33: too many lists"},
		"dashes":   {strings.Repeat("- ", 50000), "f:1:65: too many lists"},
		"large":    {strings.Repeat("#", 1<<20+1), "f:1:1: the file has 1048577 bytes"},
		"two keys": {"a: b: c\n", "f:1:4: not YAML:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.data), testEnv)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %.200v, want %s", err, c.want)
			}
		})
	}
}
