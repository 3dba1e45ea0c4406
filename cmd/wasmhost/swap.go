package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/engine/policy"
)

func newSwapCmd() *cobra.Command {
	var spec, module, token, route string
	var canary, share float64
	var promote, rollback, compare, compared, endCompare bool
	cmd := &cobra.Command{
		Use:   "swap ADMIN_URL",
		Short: "Change the policy of a running proxy, at once or for a share of its traffic",
		Long: `swap changes the policy of a running "wasmhost serve" through its admin listener, under traffic: no query is
lost, and what the old policy knows is handed over. What is refused leaves the old policy serving.

With --canary a share of the queries goes to the new policy; --share changes the share, --promote makes it the policy,
--rollback ends it, or without a canary goes back to before the last swap, one step and never forward. With --compare the new policy decides every
query beside the old one, --compared shows where they differ, and --end-compare ends it.

Without any of these it changes nothing, and says which policy, canary and comparison run.`,
		Example: `  wasmhost swap 127.0.0.1:9901
  wasmhost swap 127.0.0.1:9901 --spec 'prequal quantile=0.9'
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
			for _, alone := range []string{"share", "promote", "rollback", "compared", "end-compare"} {
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
			case endCompare:
				return c.do(ctx, out, "DELETE", "/compare", nil, "", nil)
			case spec == "":
				return c.printPolicies(ctx, out)
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
	f.BoolVar(&endCompare, "end-compare", false, "end the comparison, and show what came of it")
	f.StringVar(&route, "route", "", "route that it is about, where the proxy has several")
	f.StringVar(&token, "token-file", "", "file with the admin listener's token")
	cmd.MarkFlagsMutuallyExclusive("canary", "share", "promote", "rollback", "compare", "compared", "end-compare")
	complete(cmd, "spec", policy.Names()...)
	complete(cmd, "route")
	return cmd
}

// printPolicies says what runs: of the client's route, or of all.
func (c *adminClient) printPolicies(ctx context.Context, out io.Writer) error {
	answer, err := c.call(ctx, "GET", "/routes", nil, "", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	var routes []struct {
		Name, Spec string
		Canary     *struct {
			Spec  string
			Share float64
		}
		Comparison *struct {
			Spec                 string
			Decisions, Different uint64
		}
	}
	if err := json.NewDecoder(answer).Decode(&routes); err != nil {
		return fmt.Errorf("the answer of /routes is not that of an admin listener: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	found := false
	for _, r := range routes {
		if c.route != "" && c.route != r.Name {
			continue
		}
		found = true
		if len(routes) > 1 {
			fmt.Fprintf(w, "route\t%s\n", r.Name)
		}
		canary, comparison := "none", "none"
		if x := r.Canary; x != nil {
			canary = fmt.Sprintf("%s (share %g)", x.Spec, x.Share)
		}
		if x := r.Comparison; x != nil {
			comparison = fmt.Sprintf("%s (%d of %d decisions differ)", x.Spec, x.Different, x.Decisions)
		}
		fmt.Fprintf(w, "policy\t%s\ncanary\t%s\ncomparison\t%s\n", r.Spec, canary, comparison)
	}
	if !found {
		return badInput("--route %s: there is no such route; GET /routes lists them", c.route)
	}
	return w.Flush()
}
