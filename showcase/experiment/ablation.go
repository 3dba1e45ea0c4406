package experiment

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// ablated is Prequal with one thing changed.
type ablated struct {
	name   string
	spec   string              // what is added to the line
	fleet  func(*sim.Scenario) // or nil
	remove removal             // other than the engine's
}

// removal is which entries go.
type removal uint8

const (
	inTurn removal = iota // the worst and the oldest, as shipped
	never
	theOldest
	theWorst
)

// asShipped is Prequal as it is, which the others are compared with.
const asShipped = "as shipped"

// ablations switch mechanisms off, or make them less or more. The paper ranks over the pool
// itself. What comes nearest is a window as long as the pool, its last readings; and of four
// entries no more than the highest RIF is at rank 0.84, so that none is hot.
var ablations = []ablated{
	{name: asShipped},
	{name: "no removal", remove: never},
	{name: "oldest removed only", remove: theOldest},
	{name: "worst removed only", remove: theWorst},
	{name: "unlimited reuse", spec: " reuse=1000000"},
	{name: "single use", spec: " reuse=1"},
	{name: "pool 2", spec: " pool=2 min_pool=1"},
	{name: "pool 4", spec: " pool=4"},
	{name: "pool 4, ranked by itself", spec: " pool=4 quantile=1"},
	{name: "pool 8", spec: " pool=8"},
	{name: "pool 32", spec: " pool=32"},
	{name: "window 16", spec: " window=16"},
	{name: "window 1000", spec: " window=1000 window_age=10s"},
	{name: "by RIF alone", spec: " quantile=0"},
	{name: "by latency alone", spec: " quantile=1"},
	{name: "age limit 30 ms", spec: " max_age=30ms window_age=1s idle=500ms"},
	{name: "age limit 100 ms", spec: " max_age=100ms window_age=1s idle=500ms"},
	{name: "age limit 300 ms", spec: " max_age=300ms window_age=1s idle=500ms"},
	{name: "a tenth of probes lost", fleet: func(s *sim.Scenario) { s.ProbeLoss = 1000 }},
	{name: "no aversion", spec: " aversion=off"},
}

// rates are how much is probed and removed, at a load.
type rates struct {
	name     string
	load     float64
	probes   string // settings
	removal  string
	reuse    string // what is derived from them
	quarters int    // of a removal, per query
}

var ablationRates = []rates{
	{"1.1, 3 probes", 1.1, "", "", " reuse=1.316", 4},
	{"0.9, 1 probe", 0.9, " probe_rate=1", " remove_rate=0.25", " reuse=3.39", 1},
}

// threeProbes is the second of them with the probes and removals of the first.
const threeProbes = "0.9, 3 probes"

const ablationSpan = 40 * sim.Second

func ablation() Experiment {
	e := Experiment{
		Name: "ablation",
		About: "What each mechanism of Prequal is worth: each is switched off, or made less or more, at the usual rates above the " +
			"allocation, and below it with a third of the probes and a quarter of the removals.",
		Keys:   []string{"change", "situation"},
		Report: ablationReport(),
	}
	ts := []trial{{keys: []string{asShipped, threeProbes}, fleet: at(0.9, sim.T1()), spec: "prequal", span: ablationSpan}}
	for _, a := range ablations {
		for _, r := range ablationRates {
			ts = append(ts, a.trial(r))
		}
	}
	return bench(e, choose("failed", "p50", "p99", "p99.9", "RIF p99", "RIF p99.9", "hot", "blind"), ts)
}

func (a ablated) trial(r rates) trial {
	t := trial{keys: []string{a.name, r.name}, fleet: at(r.load, sim.T1()), spec: "prequal" + r.probes, span: ablationSpan}
	if a.fleet != nil {
		a.fleet(&t.fleet)
	}
	switch a.remove {
	case inTurn:
		t.spec += r.removal
	case never:
		t.spec += " remove_rate=0"
	default:
		t.spec += " remove_rate=0" + r.reuse
		t.around = func(m engine.Machine) engine.Machine {
			return &remover{Machine: m, quarters: r.quarters, worst: a.remove == theWorst}
		}
	}
	t.spec += a.spec
	return t
}

// remover removes entries in the place of a Prequal that does not: before each decision, and
// always the worst, or always the oldest.
type remover struct {
	engine.Machine
	quarters int // of a removal, per query
	worst    bool

	credit  int
	entries []engine.Entry
}

func (r *remover) Decide(q *engine.Query, d *engine.Decision) error {
	for r.credit += r.quarters; r.credit >= 4; r.credit -= 4 {
		if err := r.remove(q.Now); err != nil {
			return err
		}
	}
	return r.Machine.Decide(q, d)
}

func (r *remover) remove(now engine.Instant) (err error) {
	if r.entries, err = r.Machine.Entries(now, r.entries[:0]); err != nil || len(r.entries) == 0 {
		return err
	}
	out := &r.entries[0]
	for i := range r.entries {
		if e := &r.entries[i]; r.worst && worse(e, out) || !r.worst && e.At < out.At {
			out = e
		}
	}
	return r.Machine.Forget(now, out.ID, out.Asked)
}

// worse is the engine's order: the hot by RIF, then the cold by latency.
func worse(a, b *engine.Entry) bool {
	switch {
	case a.Hot != b.Hot:
		return a.Hot
	case a.Hot:
		return a.RIF > b.RIF
	}
	return a.Latency > b.Latency
}
