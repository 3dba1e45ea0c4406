package experiment

import (
	"context"
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// herdPolicies are compared by how they bear being many.
var herdPolicies = []string{"prequal", "prequal mode=sync", "least_loaded", "power_of_two", "yarp_power_of_two"}

const herdSpan = 30 * sim.Second

func herd() Experiment {
	e := Experiment{
		Name: "herd",
		About: "The same queries to the same fleet through 1, 10, 100 and 1,000 balancers that know nothing of each other: whether " +
			"they run to the same replicas at once, and what their probes cost these.",
		Keys:   []string{"balancers", "rule"},
		Report: herdReport(),
		Size:   Size{Seeds: 5, Replicas: 100, Clients: 1000},
	}
	gs := slices.Clip(choose("failed", "p50", "p99", "p99.9", "RIF p50", "RIF p99", "RIF p99.9"))
	for _, g := range gs {
		e.Columns = append(e.Columns, g.Column)
	}
	e.Columns = append(e.Columns, bunching, probesOf(herdSpan).Column)
	e.cases = func(largest Size) []run {
		var out []run
		for _, part := range []int{1000, 100, 10, 1} {
			clients := largest.Clients / part
			for _, spec := range herdPolicies {
				if clients == 0 {
					continue
				}
				size := Size{Replicas: largest.Replicas, Clients: clients}
				out = append(out, run{
					keys: []string{strconv.Itoa(clients), spec},
					measure: func(ctx context.Context, seed uint64) ([]float64, error) {
						b := newBunches(size.Replicas)
						t := trial{fleet: at(0.9, sim.T1()), spec: spec, span: herdSpan, around: b.watching}
						vs, err := t.measure(ctx, append(gs, probesOf(herdSpan)), size, seed)
						if err != nil {
							return nil, err
						}
						last := len(vs) - 1
						return append(vs[:last], b.index(), vs[last]), nil
					},
				})
			}
		}
		return out
	}
	return e
}

// probesOf is how often a replica is probed.
func probesOf(span int64) gauge {
	return gauge{
		Column{Name: "probed", Unit: "per s", About: "probes that each replica gets from all balancers", digits: 1},
		func(s saw) float64 { return float64(s.Totals.ProbesSent) / float64(len(s.replicas)) / seconds(span) },
	}
}

// bunches counts the queries that each replica is sent in short windows, one after another.
type bunches struct {
	now, last []uint64
	until     int64 // of the present window
	windows   int   // that are complete
	sent      uint64
	squares   uint64 // of the differences between windows
}

const bunchWindow = 50 * sim.Millisecond

// bunching is half the mean square of the difference between a window and the next, over the
// mean of a window: slow changes, as of a neighbour, do not count.
var bunching = Column{Name: "bunching", Unit: "x chance", About: "of the queries that a replica is sent, from one twentieth of a second to the next: 1 is as " +
	"chance has it, less is more even, and more is a herd", digits: 2}

func newBunches(replicas int) *bunches {
	return &bunches{now: make([]uint64, replicas), last: make([]uint64, replicas), until: warmUp + bunchWindow}
}

func (b *bunches) watching(m engine.Machine) engine.Machine { return &bunched{m, b} }

// bunched is a machine that is watched.
type bunched struct {
	engine.Machine
	of *bunches
}

func (m *bunched) Decide(q *engine.Query, d *engine.Decision) error {
	if err := m.Machine.Decide(q, d); err != nil {
		return err
	}
	m.of.add(int64(q.Now), int(d.Index))
	return nil
}

func (b *bunches) add(now int64, replica int) {
	if now < b.until-bunchWindow {
		return // it settles
	}
	for ; now >= b.until; b.until += bunchWindow {
		b.turn()
	}
	b.now[replica]++
}

func (b *bunches) turn() {
	for i, n := range b.now {
		if b.windows > 0 {
			d := max(n, b.last[i]) - min(n, b.last[i])
			b.squares += d * d
			b.sent += n
		}
		b.now[i] = 0
		b.last[i] = n
	}
	b.windows++
}

func (b *bunches) index() float64 { return float64(b.squares) / (2 * float64(b.sent)) }
