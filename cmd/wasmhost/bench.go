package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/bench"
	"github.com/headroom-lb/headroom/engine/policy"
)

func newBenchCmd() *cobra.Command {
	var (
		asJSON bool
		o      bench.Options
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time the engine natively, as a guest, and against an empty call",
		Long: `bench times decisions and readings in short runs, native, guest and empty call in turn in one process, and
prints nanoseconds a call: the tenth percentile over the rounds, which neighbours disturb least, with the
median in --json. Quote the ratios; the absolute figures are this machine's.`,
		Example: `  wasmhost bench
  wasmhost bench --all --json > bench.json
  wasmhost bench --spec 'prequal seed=7' --candidates 100,4096 --rounds 300 --json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Rounds < 10 || o.Rounds > 100000 {
				return badInput("--rounds %d: want 10 to 100000", o.Rounds)
			}
			for _, n := range o.Candidates {
				if n < 1 || n > 65536 {
					return badInput("--candidates %d: want 1 to 65536", n)
				}
			}
			if o.All && !cmd.Flags().Changed("candidates") {
				o.Candidates = []int{8, 64, 512, 4096}
			}
			if len(o.Specs) == 0 {
				for _, name := range policy.Names() {
					o.Specs = append(o.Specs, name+" seed=7")
				}
			}
			r, m, err := load(cmd.Context(), nil)
			if err != nil {
				return err
			}
			defer r.Close(cmd.Context())
			before, after := "", "\n"
			if terminal.Is(cmd.ErrOrStderr()) {
				before, after = "\r\x1b[K", "" // in place
			}
			o.Progress = func(done, all int, name string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s%d of %d fleets: %s%s", before, done, all, name, after)
			}
			rep, err := bench.Run(cmd.Context(), m, o)
			fmt.Fprint(cmd.ErrOrStderr(), before)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), rep)
			}
			return writeBench(cmd.OutOrStdout(), rep)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.StringArrayVar(&o.Specs, "spec", nil, "what to time; give it once for each (default every policy)")
	f.IntSliceVar(&o.Candidates, "candidates", []int{8, 100, 1000}, "fleet sizes")
	f.BoolVar(&o.All, "all", false, "8, 64, 512 and 4096 candidates, also with half of them draining, and with a change of the set before each decision")
	f.IntVar(&o.Rounds, "rounds", 100, "rounds, each with native, guest and empty calls in turn")
	complete(cmd, "spec", policy.Names()...)
	return cmd
}

func writeBench(w io.Writer, r *bench.Report) error {
	fmt.Fprintf(w, "%s, %s, module %s\nempty call of the guest: %.1f ns\n\n", r.Go, r.Machine, r.Module[:12], r.EmptyCall)
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tcandidates\tdraining\tnative ns\tguest ns\tguest/native\tguest/empty\tallocs native\tguest\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s %s\t%d\t%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t\n", row.Policy, row.Operation, row.Candidates,
			map[bool]string{true: "half", false: "none"}[row.Draining], row.Native, row.Guest, row.Ratio, row.EmptyCalls, row.NativeAlloc, row.GuestAlloc)
	}
	return t.Flush()
}
