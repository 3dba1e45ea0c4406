package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table writes the results as a table for people. Policies without a measured round show as waiting.
func Table(results []*Result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tp50\tp90\tp99\tp99.9\tp99 by round\tqueries\terrors\tlost\tprobes/query\tlag p99\tCPU\t")
	for _, r := range results {
		if len(r.RoundP99) == 0 {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t\n", r.name())
			continue
		}
		rounds := make([]string, len(r.RoundP99))
		for i, v := range r.RoundP99 {
			rounds[i] = fmt.Sprintf("%.0f", v)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%d\t%d\t%d\t%.2f\t%.1f\t%s\t\n",
			r.name(), r.P50, r.P90, r.P99, r.P999, strings.Join(rounds, " "), r.Queries, r.Errors, r.Lost,
			r.ProbesPerQuery, r.LagP99, cpuText(r.CPU))
	}
	// The only writer is a strings.Builder, which does not fail.
	_ = w.Flush()
	return b.String()
}

// shortTable is the part of the table that is worth watching.
func shortTable(results []*Result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tp50\tp90\tp99\tp99.9\terrors\tlost\tfallback\tCPU\t")
	for _, r := range results {
		if len(r.RoundP99) == 0 {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t-\t-\t\n", r.name())
			continue
		}
		decisions := uint64(0)
		for _, n := range r.Regimes {
			decisions += n
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%.1f%%\t%s\t\n", r.name(), r.P50, r.P90, r.P99, r.P999,
			r.Errors, r.Lost, 100*float64(r.Regimes["fallback"])/float64(max(1, decisions)), cpuText(r.CPU))
	}
	_ = w.Flush() // as in Table
	return b.String()
}

// Notes explain what the table cannot: regimes, the pool's settings in force, and what limits the figures.
func Notes(s Scenario, results []*Result) string {
	var b strings.Builder
	b.WriteString("Latencies in ms, from the intended instant. CPU in cores, for replicas, balancers and generator together.\n")
	for _, r := range results {
		fmt.Fprintf(&b, "%s: decisions %s", r.name(), counts(r.Regimes))
		if len(r.Causes) > 0 {
			fmt.Fprintf(&b, "; fallback for %s", counts(r.Causes))
		}
		if r.Probes.Failed+r.Probes.Shed > 0 {
			fmt.Fprintf(&b, "; of %d probes %d failed and %d were shed", r.Probes.Sent, r.Probes.Failed, r.Probes.Shed)
		}
		if r.Traps > 0 {
			fmt.Fprintf(&b, "; the guest trapped %d times", r.Traps)
		}
		b.WriteString(".\n")
		if f := r.Fit; f != nil {
			why := "as configured"
			if f.SmallFleet {
				why = fmt.Sprintf("the small-fleet rule, since %d replicas are too few for the reuse budget of the configured pool", s.Replicas)
			}
			fmt.Fprintf(&b, "  its pool holds %d, remove_rate %.2f, reuse budget %.2f: %s.\n", f.Pool, f.RemoveRate, f.ReuseBudget, why)
		}
	}
	for _, r := range results {
		if n := r.load.Latency.TotalCount(); n < 10_000 {
			fmt.Fprintf(&b, "p99.9 rests on fewer than ten queries of each policy (one in a thousand of %d): read it as a hint, or give a longer --duration.\n", n)
			break
		}
	}
	repeated := 0
	for _, r := range results {
		repeated += r.Repeated
	}
	if repeated > 0 {
		fmt.Fprintf(&b, "Rounds repeated because the generator was late: %d; their latencies do not count, their losses and errors do.\n", repeated)
	}
	if lag := worstLag(results); lag > lagLimit {
		fmt.Fprintf(&b, "The generator was late itself (lag p99 up to %.0f ms): this machine was busy, so read the figures with care and run again.\n", lag)
	}
	return b.String()
}

// lagLimit is the generator's p99 lag in milliseconds above which a round is repeated, and figures are in doubt.
const lagLimit = 10

func worstLag(results []*Result) float64 {
	worst := 0.0
	for _, r := range results {
		worst = max(worst, r.LagP99)
	}
	return worst
}

// counts writes what was counted, largest first.
func counts(m map[string]uint64) string {
	names := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(names, func(a, b string) int { return int(int64(m[b]) - int64(m[a])) })
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%s %d", n, m[n])
	}
	return strings.Join(parts, ", ")
}

func cpuText(cores float64) string {
	if cores == 0 {
		return "n/a"
	}
	return fmt.Sprintf("%.2f", cores)
}
