package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Options say how to run an experiment.
type Options struct {
	Size    Size   // a number of 0 is the experiment's own
	Workers int    // runs at once; results do not depend on it
	Only    string // cases of which a key is this one; empty for all
}

// ErrOptions says that the options are wrong.
var ErrOptions = errors.New("cannot run")

// validate checks a size. An experiment may have fewer replicas of its own than one can ask for.
func validate(s, own Size) error {
	fewest := MinReplicas
	if s.Replicas == own.Replicas {
		fewest = min(fewest, max(own.Replicas, 1))
	}
	for _, x := range []struct {
		name         string
		v, low, high int
	}{
		{"seeds", s.Seeds, 1, MaxSeeds}, {"replicas", s.Replicas, fewest, sim.MaxReplicas}, {"clients", s.Clients, 1, sim.MaxClients},
	} {
		if x.v < x.low || x.v > x.high {
			return fmt.Errorf("%w: %s %d must be %d to %d", ErrOptions, x.name, x.v, x.low, x.high)
		}
	}
	return nil
}

// Run measures every case of one experiment under every seed. When ctx ends it returns the cause
// soon after.
func Run(ctx context.Context, e Experiment, o Options) (*Result, error) {
	s, err := NewStudy([]Experiment{e}, o.Size, o.Only)
	if err != nil {
		return nil, err
	}
	if err := s.Work(ctx, Work{Workers: o.Workers}); err != nil {
		return nil, err
	}
	rs, err := s.Results()
	if err != nil {
		return nil, err
	}
	return rs[0], nil
}

// Study is experiments on their way: some runs, each a case under a seed, are measured already,
// here or elsewhere, and some are not.
type Study struct {
	parts []*part
	tasks []task
	scope []Scope
}

// part is one experiment of a study. A run's index is its case times the seeds, plus its seed.
type part struct {
	Experiment
	size   Size
	runs   []run
	find   map[string]int // the case with these keys
	values [][]float64    // nil where a run is missing
	cost   []int64        // nanoseconds of a worker; 0 is unknown
}

func joined(keys []string) string { return strings.Join(keys, "\x00") }

// task is one run of a study.
type task struct {
	of    *part
	index int
	card  int // its place when shards are dealt
}

func (t task) run() run      { return t.of.runs[t.index/t.of.size.Seeds] }
func (t task) seed() int     { return t.index%t.of.size.Seeds + 1 }
func (t task) missing() bool { return t.of.values[t.index] == nil }

func (t task) String() string {
	return fmt.Sprintf("%s, %s, seed %d", t.of.Name, strings.Join(t.run().keys, ", "), t.seed())
}

// NewStudy plans experiments; numbers of 0 in a size are each experiment's own. Only keeps the
// cases of which a key is this one, if it is not empty.
func NewStudy(es []Experiment, size Size, only string) (*Study, error) {
	s := &Study{}
	var have []string
	for _, e := range es {
		p := &part{Experiment: e, size: size.or(e.Size)}
		if err := validate(p.size, e.Size); err != nil {
			return nil, err
		}
		s.scope = append(s.scope, Scope{e.Name, p.size.Replicas, p.size.Clients})
		p.runs = e.cases(p.size)
		if only != "" {
			p.runs = slices.DeleteFunc(p.runs, func(r run) bool { return !slices.Contains(r.keys, only) })
		}
		if len(p.runs) == 0 {
			have = append(have, e.Values()...)
			continue
		}
		p.values, p.cost = make([][]float64, len(p.runs)*p.size.Seeds), make([]int64, len(p.runs)*p.size.Seeds)
		p.find = make(map[string]int, len(p.runs))
		for i, r := range p.runs {
			p.find[joined(r.keys)] = i
		}
		s.parts = append(s.parts, p)
		for i := range p.values {
			s.tasks = append(s.tasks, task{of: p, index: i})
		}
	}
	if len(s.parts) == 0 {
		return nil, fmt.Errorf("%w: there is no case %q; there are %s", ErrOptions, only, strings.Join(have, ", "))
	}
	s.shuffle()
	return s, nil
}

// shuffle gives each run its place when shards are dealt: by a hash of its name, so that no shard
// gets one rule, or the heaviest load, again and again, and every machine deals alike.
func (s *Study) shuffle() {
	hashes := make([]uint64, len(s.tasks))
	order := make([]int, len(s.tasks))
	for i, t := range s.tasks {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s\x00%s\x00%d", t.of.Name, joined(t.run().keys), t.seed())
		hashes[i], order[i] = h.Sum64(), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(hashes[a], hashes[b]) })
	for card, i := range order {
		s.tasks[i].card = card
	}
}

// Missing names the runs of a shard that are not measured yet.
func (s *Study) Missing(of Shard) []string {
	var out []string
	for _, t := range s.todo(of) {
		out = append(out, t.String())
	}
	return out
}

// Shard is a part of a study's runs: the I-th of Of, from 1; 0 is the last, for machines that
// count from nothing. The zero Shard is all runs.
type Shard struct{ I, Of int }

// has tells whether a run belongs to a shard. They are dealt out in turns.
func (s Shard) has(t task) bool { return s.Of == 0 || t.card%s.Of == s.I%s.Of }

// todo lists what is missing of a shard: the first seed of every case, then the second, so that
// what cases cost is known soon.
func (s *Study) todo(of Shard) []task {
	var out []task
	for _, t := range s.tasks {
		if of.has(t) && t.missing() {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b task) int { return a.seed() - b.seed() })
	return out
}

// ErrMissing says that a study is not complete.
var ErrMissing = errors.New("runs are missing")

// Results gives what each experiment measured. It is an error if a run is missing.
func (s *Study) Results() ([]*Result, error) {
	if m := s.Missing(Shard{}); len(m) > 0 {
		return nil, fmt.Errorf("%w: %d of %d, the first is %s", ErrMissing, len(m), len(s.tasks), m[0])
	}
	var out []*Result
	for _, p := range s.parts {
		out = append(out, p.result())
	}
	return out, nil
}

func (p *part) result() *Result {
	r := &Result{Experiment: p.Name, About: p.About, Size: p.size, Keys: p.Keys, Columns: p.Columns, report: p.Report}
	for i, one := range p.runs {
		c := Case{Keys: one.keys, Cells: make([]Cell, len(p.Columns))}
		for k := range c.Cells {
			var cell Cell
			for _, seed := range p.values[i*p.size.Seeds:][:p.size.Seeds] {
				cell = append(cell, seed[k])
			}
			if len(cell.given()) > 0 {
				c.Cells[k] = cell
			}
		}
		r.Cases = append(r.Cases, c)
	}
	r.cite()
	r.judge()
	return r
}
