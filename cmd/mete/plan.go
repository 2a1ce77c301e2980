package main

import "github.com/spf13/cobra"

func newPlanCommand() *cobra.Command { return &cobra.Command{Use: "plan"} }
