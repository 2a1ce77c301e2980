package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A folder of pages has one for each command that help lists, the same each
// time.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var pages [2]map[string]string
	for i := range pages {
		dir := filepath.Join(t.TempDir(), "man1")
		root := newRootCommand()
		root.SetArgs([]string{"docs", "man", dir})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		pages[i] = map[string]string{}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			pages[i][f.Name()] = string(text)
		}
	}
	commands := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		commands++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page := pages[0][name]
		if page == "" || page != pages[1][name] || !strings.Contains(page, "Nov 2023") {
			t.Errorf("%s lacks, differs or has another date: %.200s", name, page)
		}
		if c.HasExample() && !strings.Contains(page, "EXAMPLE") {
			t.Errorf("%s has no examples", name)
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRootCommand())
	if len(pages[0]) != commands {
		t.Errorf("%d pages for %d commands", len(pages[0]), commands)
	}
	// An indented list stays one, and no character is taken for Markdown.
	if !strings.Contains(pages[0]["mete-config-check.1"], ".EX\nversion: 1\nproviders:\n  geocoder:\n") {
		t.Errorf("the file in the page is no longer one:\n%s", pages[0]["mete-config-check.1"])
	}
}

func TestManDate(t *testing.T) {
	for _, epoch := range []string{"", "today", "-5"} {
		if _, err := sourceDate(epoch); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("%q: got %v", epoch, err)
		}
	}
}

// complete asks as the scripts of all shells do.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	if err := root.Execute(); err != nil {
		t.Fatal(args, err)
	}
	return strings.Fields(out.String())
}

func TestCompletion(t *testing.T) {
	inFolder(t, strings.Replace(goodConfig, "rate: 50/s", "ratte: 50/s", 1)) // with a mistake in it
	for _, c := range []struct {
		args string
		want string
	}{
		{"run --body ", "auto file none :4"},
		{"run --progress a", "auto bar plain json none :4"}, // the shell chooses,
		{"run -f ", "yaml yml :8"},
		{"run -f mete.yaml --provider ", "a b :4"},
		{"run -f mete.yaml --provider b", "b :4"},
		{"run -f missing.yaml --provider ", ":4"},
		{"run --provider ", ":4"},
		{"run --rate ", ":4"},
		{"run --state ", ":16"},
		{"run -o ", ":0"},
		{"run ", ":0"},
		{"plan ", ":0"},
		{"stub --window ", "sliding fixed bucket :4"},
		{"config show --format ", "yaml json :4"},
		{"config init ", "yaml yml :8"},
	} {
		if got := strings.Join(complete(t, strings.Split(c.args, " ")...), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
	if got := complete(t, "con"); !slices.Contains(got, "config") {
		t.Errorf("con: got %v", got)
	}
}

// Every word that is offered for a flag of run is one that it takes.
func TestCompletionWords(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, flag := range []string{"body", "on-bad-row", "summary", "progress"} {
		words := complete(t, "run", "--"+flag, "")
		if len(words) < 3 {
			t.Errorf("--%s: offers %v", flag, words)
		}
		for _, word := range words[:len(words)-1] {
			root := newRootCommand()
			// The other mistake is found after the words.
			root.SetArgs([]string{"run", "--" + flag, word, "-f", "missing.yaml", "x"})
			if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
				t.Errorf("--%s %s: %v", flag, word, err)
			}
		}
	}
}

// The script for bash completes in bash. mete is this test, by TestMain.
func TestCompletionInBash(t *testing.T) {
	inFolder(t, goodConfig)
	var script bytes.Buffer
	root := newRootCommand()
	root.SetArgs([]string{"completion", "bash"})
	root.SetOut(&script)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mete.bash", script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", "-n", "mete.bash").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Of the package bash-completion the script needs one function, which gives
	// it the words of the line.
	out, err := exec.Command("bash", "--norc", "-c", `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
. ./mete.bash
tab() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
	COMP_POINT=${#COMP_LINE} COMPREPLY=()
	local how
	how=$(complete -p mete)
	[[ $how =~ -F\ ([^ ]+) ]] && "${BASH_REMATCH[1]}"
	echo ${COMPREPLY[@]}
}
tab mete config sh
tab mete run -f mete.yaml --provider ''
tab mete run --body n
`).Output() // stderr says that no key was pressed
	if got := string(out); err != nil || got != "show\na b\nnone\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, shell := range []string{"zsh", "fish", "powershell"} {
		script.Reset()
		root := newRootCommand()
		root.SetArgs([]string{"completion", shell})
		root.SetOut(&script)
		if err := root.Execute(); err != nil || script.Len() < 1000 {
			t.Errorf("%s: %v, %d bytes", shell, err, script.Len())
		}
	}
}
