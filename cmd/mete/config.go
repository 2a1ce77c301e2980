package main

import "github.com/spf13/cobra"

func newConfigCommand() *cobra.Command { return &cobra.Command{Use: "config"} }
