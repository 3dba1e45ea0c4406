package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

func neighbours() Experiment {
	var ts []trial
	for _, load := range []struct {
		name string
		of   float64
	}{{"0.9", .9}, {"1.1", 1.1}} {
		for _, spec := range []string{wrr, "prequal", sim.Omniscient} {
			ts = append(ts, trial{keys: []string{load.name, spec}, fleet: at(load.of, sim.Antagonists()), spec: spec})
		}
	}
	return bench(Experiment{
		Name:   "neighbours",
		Report: neighboursReport(),
		About: "The paper's argument against balancing CPU: a fleet a tenth over its allocation, of which two machines in a hundred " +
			"have nothing to spare. An equal share of the CPU is too much for those two alone, and everyone's tail.",
		Keys: []string{"load", "rule"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p99", "RIF p99.9", "CPU p99"), ts)
}
