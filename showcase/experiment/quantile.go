package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// quantiles are the paper's fourteen: 0, then 0.9^10 up by 10/9 to 0.9, and three beyond; and the
// usual 0.84.
var quantiles = []string{"0", "0.35", "0.39", "0.43", "0.48", "0.53", "0.59", "0.66", "0.73", "0.81", "0.84", "0.9", "0.99", "0.999", "1"}

// windows are how many readings the threshold is a quantile of, the usual one first. Sixteen are as
// many as the pool has entries.
var windows = []struct {
	readings  string
	quantiles []string
}{
	{"128", quantiles},
	{"16", []string{"0.35", "0.59", "0.84", "0.9", "0.99", "0.999"}},
	{"1000", []string{"0.35", "0.59", "0.84", "0.9", "0.99", "0.999"}},
}

func quantile() Experiment {
	var ts []trial
	for _, w := range windows {
		for _, q := range w.quantiles {
			ts = append(ts, trial{
				keys: []string{"window " + w.readings, q}, fleet: at(.94, sim.T2()),
				spec: "prequal quantile=" + q + " window=" + w.readings,
			})
		}
	}
	all := at(.94, sim.T2())
	all.WorkOnly = false
	for _, q := range []string{"0.84", "0.99", "1"} {
		ts = append(ts, trial{keys: []string{"all latencies", q}, fleet: all, spec: "prequal quantile=" + q})
	}
	return bench(Experiment{
		Name:   "quantile",
		Report: quantileReport(),
		About: "What the one number of the hot-cold rule does: from 0, least RIF alone, to 1, least latency alone, " +
			"where half of the machines are slow. The threshold is that quantile of a window of the RIFs that a client has read last.",
		Keys: []string{"window", "quantile"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p50", "RIF p90", "RIF p99", "RIF p99.9", "hot", "old"), ts)
}
