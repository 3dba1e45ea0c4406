package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// comparedRules are the paper's nine, in its order, then what else there is to say about them.
var comparedRules = []struct{ name, spec string }{
	{"round_robin", "round_robin"},
	{"random", "random"},
	{wrr, wrr},
	{"least_loaded", "least_loaded"},
	{"power_of_two", "power_of_two"},
	{"yarp_power_of_two", "yarp_power_of_two poll=500ms"},
	{"linear 0.5", "linear lambda=0.5 alpha=75ms"},
	{"c3", "c3"},
	{"prequal 0.75", "prequal quantile=0.75"}, // as there
	{"prequal", "prequal"},
	{"sync d=3", "prequal mode=sync probes=3"},
	{"sync d=5", "prequal mode=sync probes=5"},
	{"peak_ewma", "peak_ewma"},
	{"bound", sim.Omniscient},
}

func nineRules() Experiment {
	var ts []trial
	for _, load := range []struct {
		name string
		of   float64
	}{{"70 %", .7}, {"90 %", .9}} {
		for _, r := range comparedRules {
			ts = append(ts, trial{keys: []string{load.name, r.name}, fleet: at(load.of, sim.T1()), spec: r.spec})
		}
	}
	return bench(Experiment{
		Name:   "rules",
		Report: nineRulesReport(),
		About: "The paper's nine selection rules at 70 and 90 % of the allocation, where three machines in ten are old and " +
			"neighbours come and go; then synchronous mode, a rule of other balancers, and the bound of who knows everything.",
		Keys: []string{"load", "rule"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p99", "old"), ts)
}
