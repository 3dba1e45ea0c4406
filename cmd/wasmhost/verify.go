package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/module"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/verdict"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/hosttest"
)

func newVerifyCmd() *cobra.Command {
	var asJSON bool
	var o hosttest.Options
	cmd := &cobra.Command{
		Use:   "verify [MODULE]",
		Short: "Hold a module to the laws of guests, and show what breaks one",
		Long: `verify makes generated calls on a module, in whatever language it was written, and judges the answers from
outside. What breaks a law is cut down to the few calls that show it. Without MODULE it is the one inside this binary.

Some laws bind every guest. Others bind those that claim them with --laws:
` + claimList() + `
Exit codes: 0 every law that binds it is kept, 1 one is broken, 2 the module cannot be judged.`,
		Example: `  wasmhost verify my-policy.wasm
  wasmhost verify --spec 'my_policy seed=7' --laws load,even my-policy.wasm
  wasmhost verify --runs 1000 --seed 42 my-policy.wasm
  wasmhost verify --json my-policy.wasm
  wasmhost verify --spec prequal --laws pool`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: filesFor(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Runs < 1 {
				return badInput("--runs %d: want at least 1", o.Runs)
			}
			name, file := "built in", ""
			if len(args) == 1 {
				name, file = args[0], args[0]
			}
			wasm, err := readModule(file)
			if err != nil {
				return err
			}
			r, m, err := module.Open(cmd.Context(), cacheDir(), wasm, hosttest.CallLimit)
			if errors.Is(err, host.ErrModule) {
				return badInput("%s: %w", name, err)
			}
			if err != nil {
				return err
			}
			defer r.Close(cmd.Context())
			show := verdict.NewProgress(cmd.ErrOrStderr())
			o.Progress = show.Step
			results, err := hosttest.Verify(cmd.Context(), m, o)
			show.Close()
			if err != nil {
				return err
			}
			report := verdict.New(name, m, o, results)
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Write(cmd.OutOrStdout())
			}
			if err == nil && report.Broken > 0 {
				err = fmt.Errorf("%s breaks %d of %d laws", name, report.Broken, report.Broken+report.Kept+report.NotJudged)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Spec, "spec", "", "spec `line` to configure it with; default: the first policy that it names")
	f.StringSliceVar(&o.Claims, "laws", nil, "further laws that it claims, by `group`, with commas between")
	f.IntVar(&o.Runs, "runs", 50, "generated sequences of calls for each law")
	f.Uint64Var(&o.Seed, "seed", 1, "of the sequences: the same seed makes the same calls")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	completeList(cmd, "laws", claimNames())
	return cmd
}

func claimNames() (names []string) {
	for _, c := range hosttest.Claims() {
		names = append(names, c.Name)
	}
	return names
}

func claimList() string {
	var b strings.Builder
	for _, c := range hosttest.Claims() {
		fmt.Fprintf(&b, "  %-19s %s\n", c.Name, c.Doc)
	}
	return b.String()
}
