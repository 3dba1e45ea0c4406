package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// rampLoads are the paper's nine steps, each 10/9 of the last.
var rampLoads = []struct {
	name string
	of   float64
}{
	{"0.75", .75}, {"0.83", .83}, {"0.93", .93}, {"1.03", 1.03}, {"1.14", 1.14}, {"1.27", 1.27}, {"1.41", 1.41}, {"1.57", 1.57}, {"1.74", 1.74},
}

func ramp() Experiment {
	var ts []trial
	for _, load := range rampLoads {
		for _, spec := range []string{wrr, "prequal"} {
			ts = append(ts, trial{keys: []string{load.name, spec}, fleet: at(load.of, sim.T1()), spec: spec})
		}
	}
	return bench(Experiment{
		Name:   "ramp",
		Report: rampReport(),
		About: "The paper's load ramp: nine steps from three quarters of the fleet's allocation to 1.74 times it. " +
			"Balancing CPU fails as soon as some replicas are over their allocation; Prequal finds the room that others have.",
		Keys: []string{"load", "rule"},
	}, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p99", "CPU p99"), ts)
}
