package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rootGroups are the commands in the order in which one meets them.
var rootGroups = []struct {
	title    string
	commands []string
}{
	{"Send", []string{"run"}},
	{"Prepare", []string{"plan", "tune", "config", "learn"}},
	{"Look at results", []string{"results"}},
	{"Try it out", []string{"demo", "stub"}},
}

// rootHelp is what mete prints alone.
func rootHelp(root *cobra.Command, w io.Writer) {
	fmt.Fprintf(w, "%s\n", root.Short)
	width := 0
	for _, c := range root.Commands() {
		width = max(width, len(c.Name()))
	}
	shown := map[string]bool{"help": true, "completion": true}
	line := func(c *cobra.Command) {
		shown[c.Name()] = true
		fmt.Fprintf(w, "  mete %-*s  %s\n", width, c.Name(), c.Short)
	}
	for _, g := range rootGroups {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, name := range g.commands {
			if c, _, err := root.Find([]string{name}); err == nil && c != root {
				line(c)
			}
		}
	}
	fmt.Fprintln(w, "\nMore:")
	for _, c := range root.Commands() {
		if !shown[c.Name()] && !c.Hidden {
			line(c)
		}
	}
	io.WriteString(w, `
First steps, all on this machine:
  mete stub --listen 127.0.0.1:7070 --limit 20/s &
  seq -f http://127.0.0.1:7070/%g 100 | mete run --rate 20/s -o out.jsonl
  mete results fold out.jsonl | head -1

mete COMMAND -h explains a command.
`)
}

// flagGroup is a part of a command's flags under a title of its own.
type flagGroup struct {
	title string
	flags []string
}

// usages lists flags of c by name, wrapped for a terminal of 80 columns.
func usages(c *cobra.Command, names []string) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil {
			set.AddFlag(f)
		}
	}
	return set.FlagUsagesWrapped(80)
}

// asksShort reports whether the short help is wanted: -h, not --help.
func asksShort(args []string) bool { return slices.Contains(args, "-h") }

// flagError says what is wrong with a flag, and which one was perhaps meant.
func flagError(c *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(c, e)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		want := ""
		switch e.GetFlag().Value.Type() {
		case "duration":
			want = "want a time, as in 500ms, 30s or 2h"
		case "int", "int64", "uint64":
			want = "want a whole number"
		case "bool":
			want = "want true or false"
		default:
			return err
		}
		return fmt.Errorf("--%s %s: %s", e.GetFlag().Name, e.GetValue(), want)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Errorf("--%s needs a value: %s", e.GetFlag().Name, what)
	}
	return err
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError) error {
	name := e.GetSpecifiedName()
	if e.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag -%s: %s -h lists them", name, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, near)
	}
	if run, _, err := c.Root().Find([]string{"run"}); err == nil && c == c.Root() && run.Flags().Lookup(name) != nil {
		return fmt.Errorf("unknown flag --%s: did you mean mete run --%s?", name, name)
	}
	return fmt.Errorf("unknown flag --%s: %s -h lists them", name, c.CommandPath())
}

// unknownCommand refuses words that are no command of c.
func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	if near := nearest(word, names); near != "" {
		return fmt.Errorf("unknown command %q: did you mean %s %s?", word, c.CommandPath(), near)
	}
	return fmt.Errorf("unknown command %q: %s alone lists them", word, c.CommandPath())
}

// nearest is the name that s was perhaps meant to be: one that it begins, or
// one that is an edit or two away; empty if there is none.
func nearest(s string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if len(s) >= 3 && strings.HasPrefix(name, s) {
			return name
		}
		if d := edits(s, name); d < least && d < len(s) {
			best, least = name, d
		}
	}
	return best
}

// edits counts the letters to insert, delete, replace or swap with their
// neighbour to turn a into b (optimal string alignment distance).
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
