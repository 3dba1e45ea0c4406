// Package experiment holds the named experiments of "showcase simulate": what each compares, in
// which worlds of the simulator, what it measures there, and which statements about the figures
// it holds them to. Everything follows from the seeds.
package experiment

import (
	"context"
	"slices"
)

// Experiment compares cases, such as rules in situations, by the same measurements.
type Experiment struct {
	Name    string
	About   string   // what it shows, in a sentence
	Keys    []string // names of what tells its cases apart
	Columns []Column // what is measured
	Size    Size     // the usual one
	cases   func(Size) []run
	Report
}

// Report is what an experiment says about its figures. All of it may be empty.
type Report struct {
	Published []Published // the paper's figures for the same cases
	Lines     []Line      // what must hold
	Plots     []Plot
	// Text is a template, written by hand, of what the figures show and what does not
	// reproduce; package paper says what may stand in it.
	Text string
}

// Column is one measurement.
type Column struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	About string `json:"about"`
	// Within is the longest that could be seen, for a time that may not end within a run.
	Within float64 `json:"within,omitempty"`
	// Beyond says what it means not to have ended, such as timeout; empty is ">Within".
	Beyond string `json:"beyond,omitempty"`

	digits int // after the point, in tables
}

// Size is how large the worlds are, and how many of each.
type Size struct {
	Seeds    int `json:"seeds"` // 1, 2, … as many
	Replicas int `json:"replicas"`
	Clients  int `json:"clients"`
}

// or fills in what is not given.
func (s Size) or(own Size) Size {
	for _, n := range []struct{ to, own *int }{
		{&s.Seeds, &own.Seeds}, {&s.Replicas, &own.Replicas}, {&s.Clients, &own.Clients},
	} {
		if *n.to == 0 {
			*n.to = *n.own
		}
	}
	return s
}

// Bounds of [Options]; those of replicas and clients above are the simulator's.
const (
	MaxSeeds    = 1000
	MinReplicas = 10
	MaxWorkers  = 1024
)

// run is one case: a pure function of its seed. It gives a value for each column: NaN for what
// does not apply, an infinity for what did not happen within the run.
type run struct {
	keys    []string
	measure func(ctx context.Context, seed uint64) ([]float64, error)
}

// Add gives an experiment one more case. Measure must be a pure function of the seed and give a
// value for each column: NaN for what does not apply, an infinity for what did not happen.
func (e *Experiment) Add(keys []string, measure func(ctx context.Context, seed uint64) ([]float64, error)) {
	before := e.cases
	e.cases = func(s Size) []run {
		var rs []run
		if before != nil {
			rs = before(s)
		}
		return append(rs, run{keys, measure})
	}
}

// Values lists what the keys of an experiment's cases may be.
func (e Experiment) Values() []string {
	var out []string
	for _, r := range e.cases(e.Size) {
		for _, k := range r.keys {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}
