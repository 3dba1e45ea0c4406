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
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t-\t-\t\n", short(r.name()))
			continue
		}
		decisions := uint64(0)
		for _, n := range r.Regimes {
			decisions += n
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%.1f%%\t%s\t\n", short(r.name()), r.P50, r.P90, r.P99, r.P999,
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
			fmt.Fprintf(&b, "; of %s %d failed and %d were shed", counted(r.Probes.Sent, "probe"), r.Probes.Failed, r.Probes.Shed)
			if late := r.Probes.Late; late > 0 {
				fmt.Fprintf(&b, " (%d had no answer in 100 ms, for want of processor time: replicas answer probes without waiting)", late)
			}
		}
		if r.Traps > 0 {
			fmt.Fprintf(&b, "; the guest trapped %s", counted(r.Traps, "time"))
		}
		b.WriteString(".\n")
		if f := r.Fit; f != nil {
			why := "as configured"
			if f.SmallFleet {
				why = fmt.Sprintf("the small-fleet rule: the fleet (%s) is too small for the reuse budget of the configured pool", counted(s.Replicas, "replica"))
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
	if n := repeated(results); n.Rounds > 0 {
		fmt.Fprintf(&b, "Repeated because the generator was late: %s. The %s sent in vain are not in the table; %d of them were lost and %d failed.\n",
			counted(n.Rounds, "round"), counted(n.Queries, "query"), n.Lost, n.Errors)
	}
	b.WriteString(caveat(results))
	return b.String()
}

// caveat is a sentence, with its line's end, for figures from a machine that was busy, and empty otherwise.
func caveat(results []*Result) string {
	lag := worstLag(results)
	if lag <= lagLimit {
		return ""
	}
	return fmt.Sprintf("The generator was late itself (lag p99 up to %.0f ms): this machine was busy, so read the figures with care and run again.\n", lag)
}

// repeated adds up the rounds that do not count.
func repeated(results []*Result) (sum Repeated) {
	for _, r := range results {
		sum.Rounds += r.Repeated.Rounds
		sum.Queries += r.Repeated.Queries
		sum.Errors += r.Repeated.Errors
		sum.Lost += r.Repeated.Lost
	}
	return sum
}

// short cuts a label for lines that must not wrap. Specs differ in their settings, so the end is kept.
func short(label string) string {
	const most = 20
	runes := []rune(label)
	if len(runes) <= most {
		return label
	}
	return string(runes[:7]) + "…" + string(runes[len(runes)-most+8:])
}

// counted is a number and a noun that agree.
func counted[N int | int64 | uint64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
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
