// Command peertest runs the tests of golang.org/x/sync/semaphore and of
// golang.org/x/time/rate against mete's semaphore and rate. It takes the tests
// from the module cache and maps them, by go test's -overlay, into a module of
// the same name in a temporary folder, whose package is a thin adapter on mete.
// Nothing of theirs is in this repository.
//
// It prints how many tests ran and passed, and which were left out and why; the
// exit code is 1 if one failed, or one that was left out passes.
//
//	go run ./internal/peertest
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peertest:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/metehq/mete")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mete-peertest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var ran, left int
	var bad []string
	for _, p := range peers {
		r, err := p.run(ctx, strings.TrimSpace(root), filepath.Join(tmp, p.pkg))
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.module, p.pkg, err)
		}
		ran, left, bad = ran+r.ran, left+r.left, append(bad, r.bad...)
	}
	fmt.Printf("together: ran %d, passed %d, left out %d with reasons\n", ran, ran-len(bad), left)
	if len(bad) > 0 {
		return fmt.Errorf("not as expected: %s", strings.Join(bad, ", "))
	}
	return nil
}

// report is what came of a peer's tests.
type report struct {
	ran, left int
	bad       []string
}

func (p peer) run(ctx context.Context, root, dir string) (r report, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, err
	}
	cache, err := p.download(ctx, dir)
	if err != nil {
		return r, err
	}
	tests, names, err := p.tests(cache)
	if err != nil {
		return r, err
	}
	if err := p.scratch(root, dir, cache, tests, names); err != nil {
		return r, err
	}
	binary := filepath.Join(dir, p.pkg+".test")
	if _, err := command(ctx, dir, "go", "test", "-c", "-race", "-mod=mod", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./"+p.pkg); err != nil {
		return r, err
	}
	reasons := map[string]deviation{}
	for _, d := range p.left {
		if _, ok := names[d.name]; !ok {
			return r, fmt.Errorf("%s is left out, but there is no such test", d.name)
		}
		reasons[d.name] = d
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d, out := reasons[name]
		if strings.HasSuffix(name, ".go") {
			r.left += names[name]
			fmt.Fprintf(&list, "  %-34s %s\n", fmt.Sprintf("%s (%d)", name, names[name]), d.reason)
			continue
		}
		pattern := "^" + name + "$"
		if p.bubble {
			pattern = "^TestInBubble$/" + pattern
		}
		text, err := command(ctx, dir, binary, "-test.v", "-test.run="+pattern, "-test.timeout=2m")
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if !strings.Contains(text, name) {
			return r, fmt.Errorf("%s did not run:\n%s", name, text)
		}
		switch {
		case !out:
			r.ran++
			if err != nil {
				r.bad = append(r.bad, name)
				fmt.Printf("FAILED %s\n%v\n", name, err)
			}
		default:
			r.left++
			fmt.Fprintf(&list, "  %-34s %s\n", name, d.reason)
			if err == nil && !d.moot {
				return r, fmt.Errorf("%s passes: do not leave it out", name)
			}
		}
	}
	fmt.Printf("%s/%s %s, with the race detector: ran %d, passed %d, left out %d:\n%s", p.module, p.pkg, p.version, r.ran, r.ran-len(r.bad), r.left, &list)
	for _, a := range p.adapted {
		fmt.Printf("  adapted: %s\n", a)
	}
	fmt.Println()
	return r, nil
}

// download finds the module in the cache, into which it is brought if need be.
func (p peer) download(ctx context.Context, dir string) (string, error) {
	text, err := command(ctx, dir, "go", "mod", "download", "-json", p.module+"@"+p.version)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	err = json.Unmarshal([]byte(text), &m)
	return m.Dir, err
}

// tests are the files of the peer's tests, and the names of what they test: a
// file that is left out counts by its own name, with the number of its tests.
func (p peer) tests(cache string) (files []string, names map[string]int, err error) {
	all, err := filepath.Glob(filepath.Join(cache, p.pkg, "*_test.go"))
	if err != nil {
		return nil, nil, err
	}
	names = map[string]int{}
	for _, file := range all {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		base := filepath.Base(file)
		left := slices.ContainsFunc(p.left, func(d deviation) bool { return d.name == base })
		if !left {
			files = append(files, file)
		}
		for _, name := range runnable(tree) {
			if left {
				name = base
			}
			names[name]++
		}
	}
	return files, names, nil
}

// runnable are the tests of a file, and the examples that have an output.
func runnable(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
			names = append(names, f.Name.Name)
		}
	}
	for _, c := range file.Comments {
		if !strings.HasPrefix(strings.TrimSpace(c.Text()), "Output:") {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") && f.Pos() < c.Pos() && c.End() <= f.End() {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// scratch writes what go test needs into dir: a module of the peer's name, which
// finds mete in root, and the overlay that fills it.
func (p peer) scratch(root, dir, cache string, tests []string, names map[string]int) error {
	overlay := map[string]string{filepath.Join(dir, p.pkg, "adapter.go"): filepath.Join(root, p.adapter)}
	for _, file := range tests {
		overlay[filepath.Join(dir, p.pkg, filepath.Base(file))] = file
	}
	for _, pkg := range p.needs {
		files, err := filepath.Glob(filepath.Join(cache, pkg, "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				overlay[filepath.Join(dir, pkg, filepath.Base(file))] = file
			}
		}
	}
	for name := range overlay { // go vet wants the folder
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	mod := fmt.Sprintf("module %s\n\ngo 1.26.0\n\nrequire github.com/metehq/mete v0.0.0\n\nreplace github.com/metehq/mete => %s\n", p.module, root)
	write := map[string][]byte{"go.mod": []byte(mod), "go.sum": sums, "overlay.json": text}
	if p.bubble {
		write[filepath.Join(p.pkg, "bubble_test.go")] = p.driver(names)
	}
	for name, data := range write {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// driver is a test that runs each of the peer's in a bubble, and then gives
// those who are still in line the time to come through.
func (p peer) driver(names map[string]int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"testing\"\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nfunc TestInBubble(t *testing.T) {\n", p.pkg)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, "Test") {
			fmt.Fprintf(&b, "\tt.Run(%q, func(t *testing.T) {\n\t\tsynctest.Test(t, func(t *testing.T) {\n\t\t\t%s(t)\n\t\t\t<-time.After(time.Hour)\n\t\t})\n\t})\n", name, name)
		}
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// command runs a program outside the workspace and returns what it prints; the
// error holds all of it.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if dir != "" {
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=1")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.Join(fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err), errors.New(strings.TrimSpace(string(out)+stderr.String())))
	}
	return string(out), err
}
