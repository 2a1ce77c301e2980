package main

import "github.com/spf13/cobra"

func newStubCommand() *cobra.Command { return &cobra.Command{Use: "stub"} }
