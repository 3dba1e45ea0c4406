package experiment

import (
	"context"
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// scaleSteps are parts of the largest fleet, and for how long each is watched: the larger, the more
// queries there are in a second.
var scaleSteps = []struct {
	part       int
	warm, span int64
}{
	{100, 30 * sim.Second, 120 * sim.Second},
	{10, 5 * sim.Second, 12 * sim.Second},
	{1, 3 * sim.Second, 3 * sim.Second},
}

func scale() Experiment {
	e := Experiment{
		Name: "scale",
		About: "A hundred, a thousand and ten thousand replicas with a tenth as many balancers, at the same load of each: nothing that " +
			"a balancer or a replica has to bear grows with the fleet.",
		Keys:   []string{"replicas", "rule"},
		Report: scaleReport(),
		Size:   Size{Seeds: 1, Replicas: 10_000, Clients: 1000},
	}
	gs := slices.Clip(choose("failed", "p50", "p99", "p99.9", "RIF p99", "blind"))
	for _, g := range gs {
		e.Columns = append(e.Columns, g.Column)
	}
	e.Columns = append(e.Columns, probesOf(0).Column, Column{
		Name: "events", Unit: "per query", About: "that the simulator serves: arrivals, probes and their answers, ends", digits: 2,
	})
	e.cases = func(largest Size) []run {
		var out []run
		for _, s := range scaleSteps {
			size := Size{Replicas: largest.Replicas / s.part, Clients: max(1, largest.Clients/s.part)}
			for _, spec := range []string{"prequal", "power_of_two"} {
				if size.Replicas == 0 {
					continue
				}
				out = append(out, run{
					keys: []string{strconv.Itoa(size.Replicas), spec},
					measure: func(ctx context.Context, seed uint64) ([]float64, error) {
						sc := at(0.9, sim.T1())
						sc.Seed, sc.Replicas, sc.Clients = seed, size.Replicas, size.Clients
						w, err := sim.NewWorld(sc, spec, sim.Maker{Machine: sim.Native})
						if err != nil {
							return nil, err
						}
						m, err := w.Measure(s.warm, s.warm+s.span)
						if err != nil {
							return nil, err
						}
						if err := advance(ctx, w, m.From); err != nil {
							return nil, err
						}
						before := w.Events()
						if err := advance(ctx, w, m.To); err != nil {
							return nil, err
						}
						var out []float64
						seen := saw{m, w.Replicas(nil)}
						for _, g := range append(gs, probesOf(s.span)) {
							out = append(out, g.read(seen))
						}
						return append(out, float64(w.Events()-before)/float64(m.Totals.Arrivals)), nil
					},
				})
			}
		}
		return out
	}
	return e
}
