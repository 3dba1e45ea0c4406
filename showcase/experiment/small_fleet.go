package experiment

import (
	"context"
	"strconv"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// smallSizes are numbers of replicas; up to 24 of them, the paper's budget is not defined.
var smallSizes = []int{2, 3, 4, 6, 8, 12, 16, 24, 32}

// smallPolicies are compared in them. The paper's settings, where nothing is fitted, have the
// reuse budget of a large fleet.
var smallPolicies = []struct{ name, spec string }{
	{"prequal", "prequal"},
	{"prequal by RIF alone", "prequal quantile=0"},
	{"prequal, not fitted", "prequal reuse=1.316"},
	{"power_of_two", "power_of_two"},
	{"random", "random"},
}

// A small fleet is watched for longer: it has fewer queries.
const smallSpan = 240 * sim.Second

func smallFleet() Experiment {
	e := Experiment{
		Name: "small-fleet",
		About: "Fleets of two to thirty-two replicas with as many clients, at three quarters of the allocation, where half of " +
			"the machines are half as fast. Most are too small for the paper's settings, and Prequal fits itself to them.",
		Keys:   []string{"replicas", "rule"},
		Report: smallFleetReport(),
		Size:   Size{Seeds: 5, Replicas: 32, Clients: 32},
	}
	gs := choose("failed", "p50", "p90", "p99", "p99.9", "RIF p99", "blind", "probes")
	for _, g := range gs {
		e.Columns = append(e.Columns, g.Column)
	}
	e.cases = func(largest Size) []run {
		var out []run
		for _, n := range smallSizes {
			if n > largest.Replicas {
				continue
			}
			size := Size{Replicas: n, Clients: max(1, largest.Clients*n/largest.Replicas)}
			for _, p := range smallPolicies {
				t := trial{fleet: at(0.75, sim.T2()), spec: p.spec, span: smallSpan}
				out = append(out, run{
					keys:    []string{strconv.Itoa(n), p.name},
					measure: func(ctx context.Context, seed uint64) ([]float64, error) { return t.measure(ctx, gs, size, seed) },
				})
			}
		}
		return out
	}
	return e
}
