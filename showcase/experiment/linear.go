package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// lambdas are shares of RIF in the linear rule: a few of the paper's first sweep and the ends of
// its second, and what lies where something happens here.
var lambdas = []string{"0", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "0.769", "0.834", "0.904", "0.941", "0.98", "1"}

func linear() Experiment {
	var ts []trial
	for _, f := range []struct {
		name  string
		fleet sim.Scenario
	}{{"equal", sim.T3()}, {"half slow", sim.T2()}} {
		for _, l := range lambdas {
			ts = append(ts, trial{keys: []string{f.name, "linear", l}, fleet: at(.94, f.fleet), spec: "linear alpha=75ms lambda=" + l})
		}
		ts = append(ts, trial{keys: []string{f.name, "prequal", "-"}, fleet: at(.94, f.fleet), spec: "prequal"})
	}
	return bench(Experiment{
		Name:   "linear",
		Report: linearReport(),
		About: "A weighted sum of latency and RIF instead of the hot-cold rule, from latency alone to RIF alone, " +
			"where all machines are equal and where half of them are slow.",
		Keys: []string{"fleet", "rule", "lambda"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p50", "RIF p99", "RIF p99.9", "old"), ts)
}
