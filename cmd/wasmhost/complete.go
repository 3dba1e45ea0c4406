package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// complete offers the shell these values for a flag, and no files.
func complete(cmd *cobra.Command, flag string, values ...string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// completeList is complete for a flag that takes a list, set apart by commas: it offers what the list does not hold.
func completeList(cmd *cobra.Command, flag string, values []string) {
	must(cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		given := typed[:strings.LastIndexByte(typed, ',')+1]
		var out []string
		for _, v := range values {
			if !strings.Contains(","+given, ","+v+",") {
				out = append(out, given+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}))
}

// filesFor offers files for the first n arguments and nothing after them.
func filesFor(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// must stops the program at its start: only a flag that is not there makes err.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
