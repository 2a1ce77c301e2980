// Command mete sends requests to remote APIs at exactly the rate that their
// providers allow.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

// Exit codes, the same in every command.
const (
	exitOK       = 0
	exitFailed   = 1 // finished, some rows failed
	exitUsage    = 2 // usage, configuration or input: nothing was sent
	exitPolicy   = 3 // stopped by a bound the user set; can be resumed
	exitProvider = 4 // the provider cannot be used; can be resumed
	exitIO       = 5 // local files
	exitLocked   = 6 // the output is in use or belongs to another run
)

// exitError is an error that knows its exit code. A nil err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() { os.Exit(run()) }

// run is main without os.Exit, so that tests can call the program.
func run() int {
	err := newRootCommand().Execute()
	if err == nil {
		return exitOK
	}
	code := exitUsage
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	if _, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(os.Stderr, err) // begins with the place, to be clicked
		return code
	}
	fmt.Fprintln(os.Stderr, "mete:", err)
	return code
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "mete",
		Short:         "Send requests to remote APIs at exactly the rate they allow",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			rootHelp(c, c.OutOrStdout())
			return
		}
		help(c, args)
	})
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newRunCommand(),
		newPlanCommand(),
		newTuneCommand(),
		newDemoCommand(),
		newStubCommand(),
		newLearnCommand(),
		newConfigCommand(),
		newResultsCommand(),
		newVersionCommand(),
	)
	addDocs(root)
	return root
}
