package experiment

import (
	"context"
	"math"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// setting is a fleet and its load in which variants of Prequal are compared.
type setting struct {
	name    string
	load    int                         // parts per 10,000 of the allocation
	fleet   int                         // replicas; 0 is the size asked for
	clients int                         // of a hundred, how many there are; 0 is all
	change  func(s *sim.Scenario)       // or nil
	failing func(w *sim.World, on bool) // or nil
}

// settings are machines of two speeds with neighbours that come and go, unless they say otherwise.
var settings = []setting{
	{name: "at 0.7", load: 7000},
	{name: "at 0.9", load: 9000},
	{name: "at 1.1", load: 11_000},
	{name: "at 1.41", load: 14_100},
	{name: "fast and slow", load: 9400, change: func(s *sim.Scenario) { s.OldShare, s.OldCost = 50, 20_000 }},
	{name: "all alike", load: 9400, change: func(s *sim.Scenario) { s.OldShare = 0 }},
	{name: "one core each", load: 9400, change: func(s *sim.Scenario) { s.OldShare, s.Cores = 0, 1000 }},
	{name: "restless", load: 11_000, change: func(s *sim.Scenario) { s.Weather = sim.Second / 2 }},
	{name: "few clients", load: 11_000, clients: 5},
	{name: "many clients", load: 11_000, clients: 200},
	{name: "fleet of ten", load: 9000, fleet: 10},
	{name: "fleet of four", load: 7500, fleet: 4},
	{name: "one fails", load: 9000, failing: func(w *sim.World, on bool) {
		share := 0
		if on {
			share = 10_000
		}
		w.SetFailing(w.Scenario().Replicas/2, share)
	}},
}

const (
	variantWarm  = 15 * sim.Second
	variantUntil = 55 * sim.Second
)

func variant() Experiment {
	return Experiment{
		Name:  "variant",
		About: "Prequal as the paper has it against its keen variant: latency in thirteen fleets, and whether probes forget anybody.",
		Keys:  []string{"fleet", "variant"},
		Columns: []Column{
			{Name: "failed", Unit: "%", About: "of queries, after fifteen seconds to settle; a missed deadline fails too", digits: 3},
			{Name: "p50", Unit: "ms", About: "of successes"},
			{Name: "p90", Unit: "ms", About: "of successes"},
			{Name: "p99", Unit: "ms", About: "of successes"},
			{Name: "p99.9", Unit: "ms", About: "of successes"},
			{Name: "least probed", Unit: "%", About: "of its even share of probes that the replica has that is probed least", digits: 1},
			{Name: "most probed", Unit: "%", About: "of its even share of probes that the replica has that is probed most", digits: 1},
		},
		Size:  Size{Seeds: 5, Replicas: 100, Clients: 100},
		cases: variantCases,
	}
}

func variantCases(size Size) []run {
	var out []run
	for _, s := range settings {
		for _, name := range []string{"paper", "keen"} {
			out = append(out, run{
				keys:    []string{s.name, name},
				measure: func(ctx context.Context, seed uint64) ([]float64, error) { return s.measure(ctx, name, size, seed) },
			})
		}
	}
	return out
}

func (s setting) scene(size Size, seed uint64) sim.Scenario {
	sc := sim.Weather()
	sc.Name, sc.Seed, sc.Load, sc.Weather = "variant", seed, s.load, 30*sim.Second
	sc.Replicas, sc.Clients = size.Replicas, size.Clients
	if s.fleet > 0 {
		sc.Replicas, sc.Clients = s.fleet, max(1, size.Clients*s.fleet/size.Replicas)
	}
	if s.clients > 0 {
		sc.Clients = min(sim.MaxClients, max(1, size.Clients*s.clients/100))
	}
	if s.change != nil {
		s.change(&sc)
	}
	return sc
}

func (s setting) measure(ctx context.Context, name string, size Size, seed uint64) ([]float64, error) {
	sc := s.scene(size, seed)
	m := newMeter(variantUntil, nil, phase{from: variantWarm, until: variantUntil})
	asked := make(map[engine.ID]float64, sc.Replicas)
	count := func(spec string, salt uint64) (engine.Machine, error) {
		inner, err := sim.Native(spec, salt)
		return &probed{inner, asked}, err
	}
	w, err := sim.NewWorld(sc, "prequal variant="+name, sim.Maker{Machine: m.watching(count)})
	if err != nil {
		return nil, err
	}
	if err := advance(ctx, w, variantWarm); err != nil {
		return nil, err
	}
	clear(asked)
	if s.failing != nil {
		s.failing(w, true)
	}
	if err := advance(ctx, w, variantUntil); err != nil {
		return nil, err
	}
	least, most, sum := math.Inf(1), 0.0, 0.0
	for i := range sc.Replicas {
		n := asked[engine.IDOf(sim.Name(i))]
		least, most, sum = min(least, n), max(most, n), sum+n
	}
	even := sum / float64(sc.Replicas)
	during, good := m.over(variantWarm, variantUntil), &m.phases[0]
	return []float64{
		100 * float64(during.failed) / float64(during.ended), good.quantile(5000), good.quantile(9000),
		good.quantile(9900), good.quantile(9990), 100 * least / even, 100 * most / even,
	}, nil
}

// probed counts whom a machine asks for.
type probed struct {
	engine.Machine
	asked map[engine.ID]float64
}

func (p *probed) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	from := len(dst)
	dst, err := p.Machine.Probes(now, dst)
	for _, id := range dst[from:] {
		p.asked[id]++
	}
	return dst, err
}
