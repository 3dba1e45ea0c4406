package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/serve"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/spf13/cobra"
)

func newCheckCmd() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether serve would take a configuration, and what it would serve",
		Long: `check reads a file for "wasmhost serve --config" as serve does, with the files that it names: certificates,
endpoints, module, token. It opens no listener and connects to nothing.

It prints what would be served, settings that are not at their default, and warnings of those that do nothing; or each
mistake with file and line. Exit codes: 0 serve would take it, 1 it would not,
2 there was nothing to check. With --schema it prints the JSON Schema of such files instead, for editors.`,
		Example: `  wasmhost check proxy.yaml
  wasmhost check --schema > serve.schema.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case schema && len(args) > 0:
				return fmt.Errorf("%q is left over: --schema is the same for every file", args[0])
			case !schema && len(args) != 1:
				return errors.New("give one FILE: YAML with the settings of serve")
			}
			return nil
		},
		ValidArgsFunction: filesFor(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema {
				return printSchema(cmd.OutOrStdout())
			}
			f, err := os.Open(args[0])
			if err != nil {
				return badInput("%s cannot be read: %w", args[0], errors.Unwrap(err))
			}
			_ = f.Close() // it is read below
			c := serve.Defaults()
			err = c.Load(args[0])
			if err == nil {
				err = c.Validate()
			}
			if err == nil {
				c.Cache = cacheDir()
				err = serve.Check(cmd.Context(), c, cmd.OutOrStdout())
			}
			if err == nil {
				return nil
			}
			for line := range strings.Lines(err.Error()) {
				fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimSpace(line))
			}
			return errRefused
		},
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the files")
	return cmd
}

// errRefused ends a check whose findings are printed.
var errRefused = errors.New("serve would not take it")

// printSchema explains each setting by the help of its flag.
func printSchema(out io.Writer) error {
	flags := newServeCmd().Flags()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(serve.Schema(func(name string) string {
		if f := flags.Lookup(setting.Flag(name)); f != nil {
			return f.Usage
		}
		return ""
	}))
}
