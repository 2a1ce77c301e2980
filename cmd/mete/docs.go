package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addDocs gives root what documents it: completion of flags, and the hidden
// command that writes the man pages. It comes after all other commands.
func addDocs(root *cobra.Command) {
	docs := &cobra.Command{
		Use:    "docs",
		Short:  "Write the documentation of mete",
		Hidden: true, // for those who build packages
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	docs.AddCommand(newManCommand())
	root.AddCommand(docs)
	completeFlags(root)
}

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page for every command",
		Long: `Write a man page for every command into the folder DIR, which is made if needed.

The pages bear the date in SOURCE_DATE_EPOCH (seconds since 1970), so that the
same mete gives the same pages. make man takes the date of the commit.`,
		Example: `  make man && man -M dist/man mete-run
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) mete docs man dist/man/man1
  SOURCE_DATE_EPOCH=$(date +%s) mete docs man /usr/local/share/man/man1`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			if err := writeMan(c.Root(), args[0], date); err != nil {
				return &exitError{exitIO, err}
			}
			return nil
		},
	}
}

// sourceDate reads SOURCE_DATE_EPOCH (reproducible-builds.org). There is no
// default: the time of the build would make each build another one.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Time{}, errors.New("SOURCE_DATE_EPOCH is not set: write SOURCE_DATE_EPOCH=$(git log -1 --format=%ct), or use make man")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be seconds since 1970, not %q", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func writeMan(root *cobra.Command, dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true // it has today's date
	forMan(root)
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1", Date: &date, Source: "mete " + version(), Manual: "mete",
	}, dir)
}

// forMan makes Markdown of what c and the commands below it say at length,
// which is what the generator of man pages reads: without it an indented list
// becomes one paragraph, and * and < are lost.
func forMan(c *cobra.Command) {
	escape := strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, "#", `\#`)
	var b strings.Builder
	listed := false
	for line := range strings.SplitSeq(c.Long, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != listed && line != "" {
			b.WriteByte('\n') // a list begins or ends with an empty line
			listed = indented
		}
		if indented {
			b.WriteString("  " + line + "\n") // four spaces keep it as it is
		} else {
			b.WriteString(escape.Replace(line) + "\n")
		}
	}
	c.Long = strings.TrimSpace(b.String())
	for _, sub := range c.Commands() {
		forMan(sub)
	}
}
