package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

// defaultConfig is the file that mete config means unless one is named.
const defaultConfig = "mete.yaml"

func newConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Write, check and show the configuration file",
		Long: `Write, check and show the configuration file: the remote APIs and what they
allow, for mete run -f FILE. Nothing is sent.`,
		Example: `  # begin with a commented file
  mete config init --provider geo --url https://geo.example.com/v1 --rate 50/s

  # is it right, and is the concurrency enough if a request takes 2 s?
  mete config check --latency 2s

  # what is in force, and where does it come from?
  mete config show --effective`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigCheckCommand(), newConfigShowCommand(), newConfigSchemaCommand(), newConfigInitCommand())
	return c
}

// configPath is the file that args name.
func configPath(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return defaultConfig
}

// completeYAML completes the one argument by files that may be meant.
func completeYAML(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// oneOf refuses a value of a flag that is none of words.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	last := len(words) - 1
	list := words[0]
	for _, w := range words[1:last] {
		list += ", " + w
	}
	return &exitError{exitUsage, fmt.Errorf("--%s must be %s or %s, not %q", flag, list, words[last], value)}
}

func newConfigCheckCommand() *cobra.Command {
	format := "text"
	var latency time.Duration
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report everything that is wrong in a configuration file",
		Long: `Report everything that is wrong in a configuration file, all at once, each
problem at its line and column. FILE is mete.yaml unless named. Nothing is sent.

Variables such as ${API_KEY} are looked up and must be set; their values are
never shown. The exit code is 0 if the file can be used, with or without
warnings, and 2 if not.

With --latency it also warns of each concurrency that is too low for its rate:
at 50/s, requests that take 2 s are 100 in flight at once (Little's law).

A file needs little; mete config init writes one:

  version: 1
  providers:
    geocoder:
      url: https://geo.example.com/v1
      auth: {header: Authorization, value: "Bearer ${GEO_KEY}"}
      concurrency: 20
      limits: [50/s, {requests: 10000/d, window: calendar, zone: UTC}]`,
		Example: `  mete config check
  GEO_KEY=any mete config check deploy/mete.yaml --latency 800ms
  mete config check --format json | jq -r '.errors[] | "\(.line): \(.message)"'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("format", format, "text", "json"); err != nil {
				return err
			}
			if c.Flags().Changed("latency") && latency <= 0 {
				return &exitError{exitUsage, fmt.Errorf("--latency %v: want more than 0, as in 800ms or 2s", latency)}
			}
			path := configPath(args)
			file, err := config.Load(path, os.LookupEnv)
			var problems config.Errors
			if err != nil && !errors.As(err, &problems) {
				return &exitError{exitUsage, err}
			}
			var warnings []*config.Error
			if file != nil {
				warnings = file.Warnings
				if latency > 0 {
					warnings = append(slices.Clip(warnings), file.CheckLatency(latency)...)
				}
			}
			if format == "json" {
				err = printCheckJSON(c.OutOrStdout(), path, file, problems, warnings)
			} else {
				err = printCheck(c.OutOrStdout(), c.ErrOrStderr(), path, file, problems, warnings)
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
	c.Flags().StringVar(&format, "format", format, "`text|json`: json is for editors and CI")
	c.Flags().DurationVar(&latency, "latency", 0, "mean `TIME` of a request, to check that the concurrency carries the rate")
	return c
}

// printCheck writes errors and warnings to stderr and the good news to stdout.
func printCheck(stdout, stderr io.Writer, path string, file *config.File, problems config.Errors, warnings []*config.Error) error {
	if len(problems) > 0 {
		_, err := fmt.Fprintln(stderr, problems.Error())
		return err
	}
	for _, w := range warnings {
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
	if n := len(warnings); n > 0 {
		ok += ", " + plural(n, "warning")
	}
	_, err := fmt.Fprintln(stdout, ok)
	return err
}

func printCheckJSON(w io.Writer, path string, file *config.File, problems config.Errors, warnings []*config.Error) error {
	out := struct {
		File      string          `json:"file"`
		OK        bool            `json:"ok"`
		Providers int             `json:"providers"`
		Errors    []*config.Error `json:"errors"`
		Warnings  []*config.Error `json:"warnings"`
	}{path, len(problems) == 0, 0, []*config.Error{}, []*config.Error{}}
	out.Errors = append(out.Errors, problems...)
	out.Warnings = append(out.Warnings, warnings...)
	if file != nil {
		out.Providers = len(file.Providers)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func newConfigShowCommand() *cobra.Command {
	format := "yaml"
	effective := false
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a configuration file as mete understands it",
		Long: `Show a configuration file as mete understands it. FILE is mete.yaml unless named.
Nothing is sent. Secrets are shown as ***.

With --effective it shows every value that is in force, also those that the
file does not mention, and where each of them comes from:

  # mete.yaml:14              this line of the file
  # mete.yaml:9 ${API_KEY}    this line, by a variable
  # default                   not in the file

A rate and its burst are shown as the first entry of limits, which is what they
are. What is shown is a configuration file again, apart from the secrets.`,
		Example: `  mete config show
  mete config show --effective | grep -v '# default'
  mete config show deploy/mete.yaml --effective --format json | jq .config.providers.geo.limits`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("format", format, "yaml", "json"); err != nil {
				return err
			}
			file, err := config.Load(configPath(args), os.LookupEnv)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			values := file.Values()
			if effective {
				values = withState(values)
			} else {
				values = slices.DeleteFunc(values, func(v config.Value) bool { return !v.Written })
			}
			write := config.WriteYAML
			if format == "json" {
				write = config.WriteJSON
			}
			if err := write(c.OutOrStdout(), values, effective); err != nil {
				return &exitError{exitIO, err}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&effective, "effective", false, "every value in force, with its origin")
	c.Flags().StringVar(&format, "format", format, "`yaml|json`")
	return c
}

// withState adds the folder that mete run takes if the file names none.
func withState(values []config.Value) []config.Value {
	for _, v := range values {
		if v.Path[0] == "state" {
			return values
		}
	}
	dir, err := new(runFlags).stateFolder(&config.File{})
	if err != nil || dir == "" {
		dir = "none"
	}
	return slices.Insert(values, 1, config.Value{Path: []string{"state"}, Value: dir, Origin: config.FromDefault})
}

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the file, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of the configuration file: editors then
complete keys, explain them and mark mistakes while one writes.

It takes every file that mete takes. What needs more than one value to be
judged, such as two limits with one name, only mete config check finds.`,
		Example: `  mete config schema > mete.schema.json

  # VS Code with the YAML extension, Neovim, Helix and others
  sed -i '1i # yaml-language-server: $schema=mete.schema.json' mete.yaml

  # which keys has a provider?
  mete config schema | jq '."$defs".provider.properties | keys'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := c.OutOrStdout().Write(config.Schema()); err != nil {
				return &exitError{exitIO, err}
			}
			return nil
		},
	}
}
