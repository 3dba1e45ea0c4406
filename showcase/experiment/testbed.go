package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// The paper's experiments are all of one kind: trials, each of a policy in a fleet at a load, that
// settle and are then measured over a span of time.

// The course of a trial. Weights of weighted_round_robin settle in the first ten seconds.
const (
	warmUp   = 30 * sim.Second
	measured = 60 * sim.Second
)

// wrr is the rule that the paper starts from: weights by queries and CPU.
const wrr = "weighted_round_robin"

// trial is one of them.
type trial struct {
	keys  []string
	fleet sim.Scenario // its seed and size are not looked at
	spec  string
	span  int64 // is measured; 0 is the usual
	// around, if set, goes around each client's machine.
	around func(engine.Machine) engine.Machine
}

// at is a fleet at a load, as a share of its allocation.
func at(load float64, fleet sim.Scenario) sim.Scenario {
	fleet.Load = int(math.Round(load * 10_000))
	return fleet
}

// saw is what a trial measured.
type saw struct {
	*sim.Measure
	replicas []sim.ReplicaView
}

// gauge is a column, and how it is read off a trial.
type gauge struct {
	Column
	read func(saw) float64
}

// gauges are what trials can be asked for.
var gauges = []gauge{
	{
		Column{Name: "failed", Unit: "%", About: "of the queries; all of them missed their deadline", digits: 2},
		func(s saw) float64 {
			all, failed := s.Ended()
			return 100 * float64(failed) / float64(all)
		},
	},
	latency("p50", 5000), latency("p90", 9000), latency("p99", 9900), latency("p99.9", 9990),
	inFlight("RIF p50", 5000), inFlight("RIF p90", 9000), inFlight("RIF p99", 9900), inFlight("RIF p99.9", 9990),
	{
		Column{Name: "CPU p99", Unit: "%", About: "of its allocation that a replica uses in a second"},
		func(s saw) float64 { return float64(s.CPU.Quantile(9900)) / 100 },
	},
	{
		Column{Name: "old", Unit: "%", About: "of the queries that went to old machines, where they take longer"},
		func(s saw) float64 {
			all, old, there := uint64(0), uint64(0), false
			for i, n := range s.ByReplica {
				all += n
				if s.replicas[i].Old {
					old, there = old+n, true
				}
			}
			if !there {
				return math.NaN()
			}
			return 100 * float64(old) / float64(all)
		},
	},
	{
		Column{Name: "hot", Unit: "%", About: "of the decisions that were made by RIF, all entries being hot", digits: 2},
		func(s saw) float64 { return s.part(engine.RegimeHot) },
	},
	{
		Column{Name: "blind", Unit: "%", About: "of the decisions that were made at random, too little being known", digits: 2},
		func(s saw) float64 { return s.part(engine.RegimeFallback) },
	},
	{
		Column{Name: "probes", Unit: "per query", About: "that were sent", digits: 2},
		func(s saw) float64 { return float64(s.Totals.ProbesSent) / float64(s.Totals.Arrivals) },
	},
}

// part is a regime's percentage of the decisions.
func (s saw) part(r engine.Regime) float64 {
	var all uint64
	for _, n := range s.Totals.ByRegime {
		all += n
	}
	return 100 * float64(s.Totals.ByRegime[r]) / float64(all)
}

// latency is a quantile of the times that clients waited, for an answer or for the deadline.
func latency(name string, rank uint64) gauge {
	const deadline = 5 * sim.Second // of all fleets
	about := "of the time that clients wait; timeout if so many reach the deadline of 5 s"
	return gauge{
		Column{Name: name, Unit: "ms", About: about, Within: float64(deadline / sim.Millisecond), Beyond: "timeout"},
		func(s saw) float64 {
			ns := s.Latency.Quantile(rank)
			if ns >= deadline {
				return math.Inf(1)
			}
			return float64(ns) / float64(sim.Millisecond)
		},
	}
}

// inFlight is a quantile of replicas' RIF.
func inFlight(name string, rank uint64) gauge {
	return gauge{
		Column{Name: name, Unit: "queries", About: "in flight at a replica, looked at every 20 ms"},
		func(s saw) float64 { return float64(s.RIF.Quantile(rank)) },
	}
}

// choose finds gauges by name.
func choose(names ...string) (out []gauge) {
	for _, name := range names {
		n := len(out)
		for _, g := range gauges {
			if g.Name == name {
				out = append(out, g)
			}
		}
		if len(out) == n {
			panic(fmt.Sprintf("nothing measures %q", name)) // a mistake in the program
		}
	}
	return out
}

// bench makes an experiment of trials, each read by the same gauges.
func bench(e Experiment, gs []gauge, ts []trial) Experiment {
	e.Size = Size{Seeds: 5, Replicas: 100, Clients: 100}
	for _, g := range gs {
		e.Columns = append(e.Columns, g.Column)
	}
	e.cases = func(size Size) []run {
		var out []run
		for _, t := range ts {
			out = append(out, run{t.keys, func(ctx context.Context, seed uint64) ([]float64, error) {
				return t.measure(ctx, gs, size, seed)
			}})
		}
		return out
	}
	return e
}

// scene is the fleet at its size, with as many noisy machines in proportion.
func (t trial) scene(size Size, seed uint64) sim.Scenario {
	sc := t.fleet
	sc.Seed, sc.Replicas, sc.Clients = seed, size.Replicas, size.Clients
	sc.Noisy = (t.fleet.Noisy*size.Replicas + t.fleet.Replicas - 1) / t.fleet.Replicas
	return sc
}

// measure runs one world and reads the gauges.
func (t trial) measure(ctx context.Context, gs []gauge, size Size, seed uint64) ([]float64, error) {
	w, err := sim.NewWorld(t.scene(size, seed), t.spec, sim.Maker{Machine: rule{around: t.around}.machine})
	if err != nil {
		return nil, err
	}
	span := t.span
	if span == 0 {
		span = measured
	}
	m, err := w.Measure(warmUp, warmUp+span)
	if err != nil {
		return nil, err
	}
	if err := advance(ctx, w, m.To); err != nil {
		return nil, err
	}
	s := saw{m, w.Replicas(nil)}
	var out []float64
	for _, g := range gs {
		out = append(out, g.read(s))
	}
	return out, nil
}
