package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

// completeFlags registers what a shell may offer for each flag of c and the
// commands below it. It reads that from the flag's own help, so that no second
// list can differ: `auto|bar|none` are words, `FILE` is a file, `DIR` a folder,
// and anything else is free.
func completeFlags(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if complete := completion(c, f); complete != nil {
			// The only error is one of registering a flag twice.
			_ = c.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	// A command that refuses arguments must not offer files for one.
	if c.ValidArgsFunction == nil && c.Args != nil && c.Args(c, nil) == nil && c.Args(c, []string{"x"}) != nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

var choice = regexp.MustCompile(`^[\w.-]+(\|[\w.-]+)+$`)

func completion(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	what, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Value.Type() == "bool":
		return nil
	case choice.MatchString(what):
		return cobra.FixedCompletions(strings.Split(what, "|"), cobra.ShellCompDirectiveNoFileComp)
	case f.Name == "config":
		return cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
	case f.Name == "provider" && c.Flags().Lookup("config") != nil:
		return completeProvider
	case strings.EqualFold(what, "FILE"):
		return nil // what shells do by themselves
	case strings.EqualFold(what, "DIR"):
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return cobra.NoFileCompletions
}

// completeProvider offers the providers of the file in -f. It needs none of the
// file's variables, and the file may have mistakes.
func completeProvider(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range config.ProviderNames(c.Flag("config").Value.String()) {
		if strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
