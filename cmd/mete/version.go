package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the build: -ldflags "-X main.release=… -X main.commit=…".
var (
	release = "dev"
	commit  = ""
)

func version() string { return release }

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rev := commit
			if info, ok := debug.ReadBuildInfo(); ok && rev == "" {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						rev = s.Value
					}
				}
			}
			if rev == "" {
				rev = "unknown"
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "mete %s (commit %s, %s %s/%s)\n", release, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
