package main

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/engine/policy"
)

func newSwapCmd() *cobra.Command {
	var spec, module, token, route string
	var canary, share float64
	var promote, rollback, compare, compared bool
	cmd := &cobra.Command{
		Use:   "swap ADMIN_URL",
		Short: "Change the policy of a running proxy, at once or for a share of its traffic",
		Long: `swap changes the policy of a running "wasmhost serve" through its admin listener, under traffic: no query is
lost, and what the old policy knows is handed over. What is refused leaves the old policy serving.

With --canary a share of the queries goes to the new policy; --share changes the share, --promote makes it the policy,
--rollback ends it, or without a canary goes back to before the last swap, one step and never forward. With --compare the new policy decides every
query beside the old one, and --compared shows where they differ.`,
		Example: `  wasmhost swap 127.0.0.1:9901 --spec 'prequal quantile=0.9'
  wasmhost swap 127.0.0.1:9901 --spec my_policy --module my-policy.wasm --canary 0.05
  wasmhost swap 127.0.0.1:9901 --share 0.5
  wasmhost swap 127.0.0.1:9901 --promote
  wasmhost swap 127.0.0.1:9901 --spec least_loaded --compare
  wasmhost swap 127.0.0.1:9901 --route api --rollback`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newAdminClient(args[0], token, route)
			if err != nil {
				return err
			}
			ctx, out, set := cmd.Context(), cmd.OutOrStdout(), cmd.Flags().Changed
			for _, alone := range []string{"share", "promote", "rollback", "compared"} {
				for _, other := range []string{"spec", "module"} {
					if set(alone) && set(other) {
						return badInput("--%s and --%s exclude each other: --%s is about what runs already; leave one out", alone, other, alone)
					}
				}
			}
			if spec == "" && (compare || set("canary") || module != "") {
				return badInput("no --spec: name the policy and its settings")
			}
			path, query := "/swap", url.Values{}
			switch {
			case set("share"):
				return c.do(ctx, out, "POST", "/share", nil, "application/json", jsonBody(map[string]float64{"share": share}))
			case promote:
				return c.do(ctx, out, "POST", "/promote", nil, "", nil)
			case rollback:
				return c.do(ctx, out, "POST", "/rollback", nil, "", nil)
			case compared:
				return c.do(ctx, out, "GET", "/compare", nil, "", nil)
			case spec == "":
				return badInput("nothing to do: give --spec, --share, --promote, --rollback or --compared")
			case compare:
				path = "/compare"
			case set("canary"):
				path = "/canary"
				query.Set("share", strconv.FormatFloat(canary, 'g', -1, 64))
			}
			wasm, err := readModule(module)
			if err != nil {
				return err
			}
			if wasm != nil {
				query.Set("spec", spec)
				return c.do(ctx, out, "POST", path, query, "application/wasm", wasm)
			}
			return c.do(ctx, out, "POST", path, query, "application/json", jsonBody(map[string]string{"spec": spec}))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&spec, "spec", "", "the new policy and its settings")
	f.StringVar(&module, "module", "", "file of a module to send; without it the proxy's own makes the policy")
	f.Float64Var(&canary, "canary", 0, "give this `SHARE` of the queries to the new policy, such as 0.05")
	f.Float64Var(&share, "share", 0, "change the canary's `SHARE`")
	f.BoolVar(&promote, "promote", false, "make the canary the policy")
	f.BoolVar(&rollback, "rollback", false, "end the canary, or go back to before the last swap")
	f.BoolVar(&compare, "compare", false, "have the new policy decide beside the old one, and follow the old one")
	f.BoolVar(&compared, "compared", false, "show what came of the comparison")
	f.StringVar(&route, "route", "", "route that it is about, where the proxy has several")
	f.StringVar(&token, "token-file", "", "file with the admin listener's token")
	cmd.MarkFlagsMutuallyExclusive("canary", "share", "promote", "rollback", "compare", "compared")
	complete(cmd, "spec", policy.Names()...)
	complete(cmd, "route")
	return cmd
}
