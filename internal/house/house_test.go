// Package house_test checks what the compiler lets pass: that imports point
// down, that the library brings no dependencies along, and that ARCHITECTURE.md
// and README.md speak of the code as it is.
package house_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const library = "github.com/metehq/mete"

// primitives know nothing of each other; the root joins them. The one
// exception: rate is the queue around the arithmetic of internal/meter, which
// the root uses without that queue.
var primitives = []string{
	"internal/meter", "adaptive", "breaker", "quota", "rate", "retry", "semaphore", "sizing",
}

// above are the library's other packages and what of the library each may
// import, "" being the root. A new package gets a line here, or is a primitive.
var above = map[string][]string{
	"":         primitives,
	"batch":    {""},
	"metehttp": {"", "quota"},
	"metetest": {"", "metehttp"},

	"internal/peertest/rate":      {"rate"},
	"internal/peertest/semaphore": {"semaphore"},
	"internal/race":               nil,
	"internal/simulate":           {"adaptive"},
}

// pkg is what go list says of a package, without its tests.
type pkg struct {
	ImportPath, Name, Doc string
	GoFiles, Imports      []string
	Module                struct{ Path string }
}

// inLibrary is the path of an import in the library module.
func inLibrary(path string) (rel string, ok bool) {
	if path == library {
		return "", true
	}
	rel, ok = strings.CutPrefix(path, library+"/")
	return rel, ok
}

func TestPrimitivesStandAlone(t *testing.T) {
	for _, p := range list(t) {
		rel, ok := inLibrary(p.ImportPath)
		if !ok || p.Module.Path != library || !slices.Contains(primitives, rel) {
			continue
		}
		for _, imp := range p.Imports {
			other, ok := inLibrary(imp)
			if ok && !(rel == "rate" && other == "internal/meter") {
				t.Errorf("%s imports %s: a primitive imports no other package of mete; let the root join them", rel, imp)
			}
		}
	}
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range list(t) {
		rel, _ := inLibrary(p.ImportPath)
		// A main package is a door: it may use everything, and nothing can use it.
		if p.Module.Path != library || p.Name == "main" || len(p.GoFiles) == 0 || slices.Contains(primitives, rel) {
			continue
		}
		allowed, known := above[rel]
		if !known {
			t.Errorf("%s has no place in the house: give it one in house_test.go and in ARCHITECTURE.md", rel)
			continue
		}
		for _, imp := range p.Imports {
			if other, ok := inLibrary(imp); ok && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, imp)
			}
		}
	}
}

// Who uses the library inherits the standard library, golang.org/x, and one
// parser of structured header fields.
func TestLibraryBringsNothingAlong(t *testing.T) {
	for _, p := range list(t) {
		if p.Module.Path != library || p.Name == "main" {
			continue
		}
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			_, own := inLibrary(imp)
			if strings.Contains(first, ".") && !own && first != "golang.org" && imp != "github.com/dunglas/httpsfv" {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
}

// An auditor that counts as the limiter counts would confirm its mistakes.
func TestStubSharesNoCodeWithTheLimiter(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != library+"/cmd/mete/internal/stub" {
			continue
		}
		for _, imp := range p.Imports {
			if _, ok := inLibrary(imp); ok {
				t.Errorf("the stub imports %s", imp)
			}
		}
		return
	}
	t.Error("there is no stub; if it moved, change this test")
}

func TestNamesAreNouns(t *testing.T) {
	for _, p := range list(t) {
		for _, elem := range append(strings.Split(p.ImportPath, "/"), p.Name) {
			switch strings.TrimSuffix(elem, "_test") {
			case "util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib":
				t.Errorf("%s: %q says nothing; name the package for what it holds", p.ImportPath, elem)
			}
		}
	}
}

func TestArchitectureNamesEveryPackage(t *testing.T) {
	text := read(t, "ARCHITECTURE.md")
	for _, p := range list(t) {
		rel, _ := inLibrary(p.ImportPath)
		if rel == "" || p.Name == "main" || len(p.GoFiles) == 0 {
			continue
		}
		name := strings.TrimPrefix(rel, "cmd/mete/")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md has no line for `%s`", name)
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", rel)
		}
	}
}

// The Go programs in the README compile.
func TestReadmeCompiles(t *testing.T) {
	blocks := regexp.MustCompile("(?s)\n```go\n(package main\n.*?)\n```\n").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no Go program")
	}
	for _, b := range blocks {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(b[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

const root = "../.."

// list is every package of every module in the workspace.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Doc,GoFiles,Imports,Module", "work")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages: %s", len(pkgs), stderr.String())
	}
	return pkgs
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
