package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func newConfigInitCommand() *cobra.Command {
	var s config.Starter
	force := false
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented configuration file to begin with",
		Long: `Write a commented configuration file to begin with. FILE is mete.yaml unless
named; - is stdout. A file that exists is kept unless --force says otherwise.

The new file can be used as it is: mete config check accepts it without any
variable set.`,
		Example: `  mete config init
  mete config init --provider geo --url https://geo.example.com/v1 --rate 50/s -c 20
  mete config init deploy/mete.yaml --rate 50/s --rate 10000/d --force`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			path := configPath(args)
			text, err := s.File(path)
			if err != nil {
				if problems, ok := errors.AsType[config.Errors](err); ok {
					err = errors.New(problems[0].Message) // its place is in a file that is not written
				}
				return &exitError{exitUsage, err}
			}
			if path == "-" {
				_, err = c.OutOrStdout().Write(text)
			} else {
				err = writeNew(path, text, force)
			}
			switch {
			case errors.Is(err, fs.ErrExist):
				return &exitError{exitUsage, fmt.Errorf("%s exists: name another file, or replace it with --force", path)}
			case err != nil:
				return &exitError{exitIO, err}
			}
			if path != "-" {
				fmt.Fprintf(c.ErrOrStderr(), "wrote %s; look at it, then: mete config check %s\n", path, shellQuote(path))
			}
			return nil
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&s.Provider, "provider", "", "`NAME` of the provider (default api)")
	f.StringVar(&s.URL, "url", "", "its base `URL`")
	f.StringArrayVar(&s.Rates, "rate", nil, "`N/UNIT` that it allows: 50/s, 500/m, 5/15s; may be repeated")
	f.StringVarP(&s.Concurrency, "concurrency", "c", "", "up to `N` requests in flight (default 16)")
	f.BoolVar(&force, "force", false, "replace a file that exists")
	return c
}

// writeNew writes a whole file or none. Without force it is fs.ErrExist if
// there is something at path already, also something that came just now.
func writeNew(path string, data []byte, force bool) error {
	const mode = 0o644
	if force {
		return renameio.WriteFile(path, data, mode)
	}
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	t, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode))
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if _, err := t.Write(data); err != nil {
		return err
	}
	if err := t.Sync(); err != nil {
		return err
	}
	// A link fails where a rename would replace.
	err = os.Link(t.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return t.CloseAtomicallyReplace() // a file system without links
}
