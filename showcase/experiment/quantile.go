package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// quantiles are the paper's fourteen: 0, then 0.9^10 up by 10/9 to 0.9, and three beyond.
var quantiles = []string{"0", "0.35", "0.39", "0.43", "0.48", "0.53", "0.59", "0.66", "0.73", "0.81", "0.9", "0.99", "0.999", "1"}

// windows are from what of readings the threshold is ranked.
var windows = []struct {
	name, set string
	all       bool // quantiles, or those that tell windows apart
}{
	{"128", "", true},
	{"16", " window=16", false},
	{"1000", " window=1000", false},
}

func quantile() Experiment {
	var ts []trial
	for _, w := range windows {
		for _, q := range quantiles {
			ts = append(ts, trial{keys: []string{w.name, q}, fleet: at(.94, sim.T2()), spec: "prequal quantile=" + q + w.set})
		}
	}
	return bench(Experiment{
		Name: "quantile",
		About: "What the one number of the hot-cold rule does: from 0, least RIF alone, to 1, least latency alone, " +
			"where half of the machines are slow. The threshold is that quantile of a window of the RIFs that a client has read last.",
		Keys: []string{"window", "quantile"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p50", "RIF p90", "RIF p99", "RIF p99.9", "hot", "old"), ts)
}
