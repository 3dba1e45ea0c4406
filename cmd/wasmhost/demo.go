package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/demo"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/headroom-lb/headroom/engine/policy"
)

func newDemoCmd() *cobra.Command {
	s := demo.Defaults()
	var policies string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Compare the policies on real HTTP replicas; needs no set-up",
		Long: `demo starts HTTP replicas on loopback, some of them beside a noisy neighbour, and for each policy a number of
independent proxies that run the WebAssembly module. Every policy gets the same open-loop arrivals, in interleaved
rounds; latency counts from the instant at which a query was meant to leave. It ends with a table and one sentence that
is made from the numbers.

One proxy would see every query in flight and make any rule look good; real fleets have many that do not. Try
--balancers 1 to see the difference.`,
		Example: `  wasmhost demo
  wasmhost demo --balancers 1
  wasmhost demo --policies 'least_loaded,prequal,prequal probe_rate=1' --duration 60s
  wasmhost demo --json | jq .verdict`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Policies = splitSpecs(policies)
			if !cmd.Flags().Changed("noisy") {
				s.Noisy = demo.Noisy(s.Replicas)
			}
			if err := s.Validate(); err != nil {
				return badInput("%w", err)
			}
			for _, spec := range s.Policies {
				if _, err := policy.Parse(spec); err != nil {
					return badInput("--policies: %w", setting.Suggest(err))
				}
			}
			progress := cmd.OutOrStdout()
			if asJSON {
				progress = cmd.ErrOrStderr()
			}
			fmt.Fprint(progress, s.Describe())
			results, err := demo.Run(cmd.Context(), s, cacheDir(), demo.NewDisplay(progress))
			if cmd.Context().Err() != nil {
				return errors.New("interrupted before the comparison was complete")
			}
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(demo.NewDocument(s, results))
			}
			fmt.Fprintf(progress, "\n%s\n%s%s, %d CPUs.\n\n%s\n", demo.Table(results), demo.Notes(s, results),
				version(), runtime.NumCPU(), demo.Verdict(results))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&policies, "policies", strings.Join(s.Policies, ","), "specs to compare, set apart by commas")
	f.DurationVar(&s.Duration, "duration", s.Duration, "time under load, shared by all policies and rounds")
	f.IntVar(&s.Rounds, "rounds", s.Rounds, "rounds of each policy")
	f.Float64Var(&s.Rate, "rate", s.Rate, "queries per second, over all balancers")
	f.IntVar(&s.Replicas, "replicas", s.Replicas, "HTTP replicas")
	f.IntVar(&s.Noisy, "noisy", s.Noisy, "replicas that have a noisy neighbour")
	f.Lookup("noisy").DefValue = "a fifth"
	f.Float64Var(&s.SlowFactor, "slow-factor", s.SlowFactor, "how much longer service takes beside one")
	f.IntVar(&s.Balancers, "balancers", s.Balancers, "independent proxies per policy")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of arrivals, work and policies")
	f.BoolVar(&asJSON, "json", false, "print one JSON document at the end; progress goes to stderr")
	cmd.Flags().SortFlags = false
	completeList(cmd, "policies", policy.Names())
	return cmd
}

// splitSpecs splits at commas; specs hold none.
func splitSpecs(list string) []string {
	var out []string
	for spec := range strings.SplitSeq(list, ",") {
		if spec = strings.TrimSpace(spec); spec != "" {
			out = append(out, spec)
		}
	}
	return out
}
