package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func newConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration file",
		Args:  func(_ *cobra.Command, args []string) error { return checkConfigWord(args) },
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	// A word that is not available yet says so, also before a flag of its own.
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cmp.Or(checkConfigWord(c.Flags().Args()), err)
	})
	check := newConfigCheckCommand()
	check.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err })
	c.AddCommand(check)
	return c
}

// checkConfigWord says why args begin with no command of mete config.
func checkConfigWord(args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch args[0] {
	case "show", "schema", "init":
		return fmt.Errorf("config %s is not available yet", args[0])
	}
	return fmt.Errorf("unknown command %q for mete config: write mete config check [FILE]", args[0])
}

func newConfigCheckCommand() *cobra.Command {
	format := "text"
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report everything that is wrong in a configuration file",
		Long: `Report everything that is wrong in a configuration file, all at once, each
problem at its line and column. FILE is mete.yaml unless named. Nothing is sent.

Variables such as ${API_KEY} are looked up and must be set; their values are
never shown. The exit code is 0 if the file can be used, with or without
warnings, and 2 if not.

A file needs little:

  version: 1
  providers:
    geocoder:
      url: https://geo.example.com/v1
      auth: {header: Authorization, value: "Bearer ${GEO_KEY}"}
      concurrency: 20
      limits: [50/s, {requests: 10000/d, window: calendar, zone: UTC}]`,
		Example: `  mete config check
  GEO_KEY=any mete config check deploy/mete.yaml
  mete config check --format json | jq -r '.errors[] | "\(.line): \(.message)"'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := "mete.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			file, err := config.Load(path, os.LookupEnv)
			var problems config.Errors
			if err != nil && !errors.As(err, &problems) {
				return &exitError{exitUsage, err}
			}
			switch format {
			case "text":
				err = printCheck(c.OutOrStdout(), c.ErrOrStderr(), path, file, problems)
			case "json":
				err = printCheckJSON(c.OutOrStdout(), path, file, problems)
			default:
				return &exitError{exitUsage, fmt.Errorf("--format must be text or json, not %q", format)}
			}
			if err != nil {
				return &exitError{exitIO, err}
			}
			if len(problems) > 0 {
				// Already printed: each line begins with the place, to be clicked.
				return &exitError{code: exitUsage}
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", format, "text, or json for editors and CI")
	return c
}

// printCheck writes errors and warnings to stderr and the good news to stdout.
func printCheck(stdout, stderr io.Writer, path string, file *config.File, problems config.Errors) error {
	if len(problems) > 0 {
		_, err := fmt.Fprintln(stderr, problems.Error())
		return err
	}
	for _, w := range file.Warnings {
		if _, err := fmt.Fprintf(stderr, "%s:%d:%d: warning: %s\n%s", w.File, w.Line, w.Col, w.Message, w.Source); err != nil {
			return err
		}
	}
	plural := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	ok := path + ": ok, " + plural(len(file.Providers), "provider")
	if n := len(file.Warnings); n > 0 {
		ok += ", " + plural(n, "warning")
	}
	_, err := fmt.Fprintln(stdout, ok)
	return err
}

func printCheckJSON(w io.Writer, path string, file *config.File, problems config.Errors) error {
	out := struct {
		File      string          `json:"file"`
		OK        bool            `json:"ok"`
		Providers int             `json:"providers"`
		Errors    []*config.Error `json:"errors"`
		Warnings  []*config.Error `json:"warnings"`
	}{path, len(problems) == 0, 0, []*config.Error{}, []*config.Error{}}
	out.Errors = append(out.Errors, problems...)
	if file != nil {
		out.Providers = len(file.Providers)
		out.Warnings = append(out.Warnings, file.Warnings...)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
