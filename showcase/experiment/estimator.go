package experiment

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// estimators are what replicas remember of their latencies.
var estimators = []struct {
	name  string
	is    probe.EstimatorConfig
	blind bool // to RIF
}{
	{name: asShipped},
	{name: "memory 1 s", is: probe.EstimatorConfig{Memory: engine.Second}},
	{name: "memory 1 s, held 30 s", is: probe.EstimatorConfig{Memory: engine.Second, Hold: 30 * engine.Second}},
	{name: "memory 3 s", is: probe.EstimatorConfig{Memory: 3 * engine.Second}},
	{name: "memory 30 s", is: probe.EstimatorConfig{Memory: 30 * engine.Second}},
	{name: "1 sample", is: probe.EstimatorConfig{Samples: 1}},
	{name: "3 samples", is: probe.EstimatorConfig{Samples: 3}},
	{name: "17 samples", is: probe.EstimatorConfig{Samples: 17}},
	{name: "33 samples", is: probe.EstimatorConfig{Samples: 33}},
	{name: "of any RIF", blind: true},
	{name: "finished only", is: probe.EstimatorConfig{FinishedOnly: true}},
}

// estimated are the fleets in which they are compared.
var estimated = []struct {
	name  string
	load  float64
	fleet func() sim.Scenario
	phase int64 // of neighbours, if not the usual
}{
	{"fast and slow at 0.94", 0.94, sim.T2, 0},
	{"three in ten old at 1.1", 1.1, sim.T1, 0},
	{"restless at 1.1", 1.1, sim.T1, sim.Second / 2},
}

const estimatorSpan = 45 * sim.Second

func estimator() Experiment {
	e := Experiment{
		Name: "estimator",
		About: "What replicas should say of their latency when they are probed: how far back they look, over how many queries, and " +
			"whether at those alone that met about as many others as are there now.",
		Keys:   []string{"estimator", "fleet"},
		Report: estimatorReport(),
	}
	var ts []trial
	for _, s := range estimators {
		for _, f := range estimated {
			fleet := at(f.load, f.fleet())
			fleet.Estimator, fleet.RIFBlind = s.is, s.blind
			if f.phase > 0 {
				fleet.Weather = f.phase
			}
			ts = append(ts, trial{keys: []string{s.name, f.name}, fleet: fleet, spec: "prequal", span: estimatorSpan})
		}
	}
	return bench(e, choose("failed", "p50", "p90", "p99", "p99.9", "RIF p99", "old"), ts)
}
