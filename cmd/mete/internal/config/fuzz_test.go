package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/config"
)

// FuzzParse: no input makes it panic, every problem lies inside the file, and
// no secret is shown.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("version: 1\nproviders: {a: {url: https://x.example, rate: 5/s}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("f", data, testEnv)
		if (file == nil) == (err == nil) {
			t.Fatalf("got %v and %v", file, err)
		}
		shown := ""
		problems, _ := errors.AsType[config.Errors](err)
		if file != nil {
			problems = file.Warnings
			encoded, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range file.Providers {
				if _, err := mete.New(p.Gate); err != nil {
					t.Fatalf("the library refuses what was read: %v", err)
				}
			}
			shown = fmt.Sprintf("%+v %#v %s", file, *file, encoded)
		}
		shown += problems.Error()
		if strings.Contains(shown, secretValue) && !strings.Contains(string(data), "do-not-show") {
			t.Fatalf("shows a secret: %s", shown)
		}
		lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
		last := 0
		for _, e := range problems {
			if e.Line < 1 || e.Line > len(lines) || e.Col < 1 || e.Col > utf8.RuneCountInString(lines[e.Line-1])+1 {
				t.Fatalf("%v is not in the file", e)
			}
			if e.Line < last {
				t.Fatalf("%v is out of order", e)
			}
			last = e.Line
			if strings.ContainsAny(e.Message, "\n\x1b") {
				t.Fatalf("%q is not one line", e.Message)
			}
		}
	})
}
