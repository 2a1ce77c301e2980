package main

import "github.com/spf13/cobra"

func newResultsCommand() *cobra.Command { return &cobra.Command{Use: "results"} }
