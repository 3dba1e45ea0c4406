// Package experiment holds the named experiments of "showcase simulate": what each compares, in
// which worlds of the simulator, and what it measures there. Everything follows from the seeds.
package experiment

import "context"

// Experiment compares cases, such as rules in situations, by the same measurements.
type Experiment struct {
	Name    string
	About   string   // what it shows, in a sentence
	Keys    []string // names of what tells its cases apart
	Columns []Column // what is measured
	Size    Size     // the usual one
	cases   func(Size) []run
}

// Column is one measurement.
type Column struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	About string `json:"about"`
	// Within is the longest that could be seen, for a time that may not end within a run.
	Within float64 `json:"within,omitempty"`

	digits int // after the point, in tables
}

// Size is how large the worlds are, and how many of each.
type Size struct {
	Seeds    int `json:"seeds"` // 1, 2, … as many
	Replicas int `json:"replicas"`
	Clients  int `json:"clients"`
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

// All lists the experiments.
func All() []Experiment { return []Experiment{sinkhole(), variant()} }

// Named finds an experiment.
func Named(name string) (Experiment, bool) {
	for _, e := range All() {
		if e.Name == name {
			return e, true
		}
	}
	return Experiment{}, false
}
