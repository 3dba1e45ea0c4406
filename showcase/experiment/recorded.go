package experiment

import (
	"context"
	"slices"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Recorded is traffic that was recorded somewhere, to be served in a fleet of the simulator.
type Recorded struct {
	Arrivals []sim.Arrival
	Fleet    sim.Scenario // with as many replicas as there shall be
	Load     float64      // work offered, over the fleet's allocation
}

// Replay makes an experiment of it: the same queries at the same instants under each of some
// specs. Seeds differ in the machines' neighbours, in delays and in draws; not in the traffic.
func Replay(r Recorded, specs []string) (Experiment, error) {
	sc := at(r.Load, r.Fleet)
	if err := sc.Replay(r.Arrivals, sc.Load); err != nil {
		return Experiment{}, err
	}
	e := Experiment{
		Name:  "replay",
		About: "Recorded traffic under rules that did not serve it then: the same queries at the same instants, in a simulated fleet.",
		Keys:  []string{"rule"},
		Size:  Size{Seeds: 5, Replicas: sc.Replicas, Clients: sc.Clients},
	}
	gs := slices.Clip(choose("failed", "p50", "p90", "p99", "p99.9", "RIF p50", "RIF p99", "probes"))
	for _, g := range gs {
		e.Columns = append(e.Columns, g.Column)
	}
	for _, spec := range specs {
		e.Add([]string{spec}, func(ctx context.Context, seed uint64) ([]float64, error) {
			sc := sc
			sc.Seed = seed
			return replay(ctx, sc, spec, gs)
		})
	}
	return e, nil
}

// replay runs one world until the last query has ended.
func replay(ctx context.Context, sc sim.Scenario, spec string, gs []gauge) ([]float64, error) {
	w, err := sim.NewWorld(sc, spec, sim.Maker{Machine: sim.Native})
	if err != nil {
		return nil, err
	}
	// RIF is looked at while queries arrive.
	last := sc.Recorded[len(sc.Recorded)-1].At + 1
	m, err := w.Measure(0, last)
	if err != nil {
		return nil, err
	}
	rest, err := w.Measure(last, last+sc.Deadline+sim.Second)
	if err != nil {
		return nil, err
	}
	if err := advance(ctx, w, rest.To); err != nil {
		return nil, err
	}
	during := m.RIF
	m.Merge(rest)
	m.RIF = during
	s := saw{m, w.Replicas(nil)}
	var out []float64
	for _, g := range gs {
		out = append(out, g.read(s))
	}
	return out, nil
}
