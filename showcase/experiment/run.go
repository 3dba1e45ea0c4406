package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Options say how to run an experiment.
type Options struct {
	Size    Size
	Workers int    // runs at once; results do not depend on it
	Only    string // cases of which a key is this one; empty for all
	// Progress, if set, hears after each run how many of all are done, from one goroutine at a time.
	Progress func(done, total int)
}

// ErrOptions says that the options are wrong.
var ErrOptions = errors.New("cannot run")

func (o *Options) validate() error {
	for _, x := range []struct {
		name         string
		v, low, high int
	}{
		{"seeds", o.Size.Seeds, 1, MaxSeeds}, {"replicas", o.Size.Replicas, MinReplicas, sim.MaxReplicas},
		{"clients", o.Size.Clients, 1, sim.MaxClients}, {"workers", o.Workers, 1, MaxWorkers},
	} {
		if x.v < x.low || x.v > x.high {
			return fmt.Errorf("%w: %s %d must be %d to %d", ErrOptions, x.name, x.v, x.low, x.high)
		}
	}
	return nil
}

// Result is what an experiment measured.
type Result struct {
	Experiment string   `json:"experiment"`
	About      string   `json:"about"`
	Size       Size     `json:"size"`
	Keys       []string `json:"keys"`
	Columns    []Column `json:"columns"`
	Cases      []Case   `json:"cases"`
}

// Case is one case with a cell for each column.
type Case struct {
	Keys  []string `json:"keys"`
	Cells []Cell   `json:"cells"`
}

// Cell is one measurement over all seeds, or empty where it does not apply. What did not happen
// within a run is an infinity.
type Cell []float64

// Run measures every case under every seed. When ctx ends it returns the cause soon after.
func Run(ctx context.Context, e Experiment, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	runs := e.cases(o.Size)
	if o.Only != "" {
		runs = slices.DeleteFunc(runs, func(r run) bool { return !slices.Contains(r.keys, o.Only) })
		if len(runs) == 0 {
			return nil, fmt.Errorf("%w: %s has no case %q; there are %s", ErrOptions, e.Name, o.Only, strings.Join(e.Values(), ", "))
		}
	}
	values, err := measure(ctx, runs, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Experiment: e.Name, About: e.About, Size: o.Size, Keys: e.Keys, Columns: e.Columns}
	for i, one := range runs {
		c := Case{Keys: one.keys, Cells: make([]Cell, len(e.Columns))}
		for _, seed := range values[i*o.Size.Seeds:][:o.Size.Seeds] {
			for k, v := range seed {
				if !math.IsNaN(v) {
					c.Cells[k] = append(c.Cells[k], v)
				}
			}
		}
		r.Cases = append(r.Cases, c)
	}
	return r, nil
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

// measure fills a slot for each case and seed, whoever works on it.
func measure(ctx context.Context, runs []run, o Options) ([][]float64, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	total := len(runs) * o.Size.Seeds
	values := make([][]float64, total)
	var next atomic.Int64
	var mu sync.Mutex // guards done and Progress
	done := 0
	var workers sync.WaitGroup
	for range min(o.Workers, total) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < total && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r := runs[i/o.Size.Seeds]
				v, err := r.measure(ctx, uint64(i%o.Size.Seeds+1))
				if err != nil {
					stop(fmt.Errorf("%s: %w", strings.Join(r.keys, ", "), err))
					return
				}
				values[i] = v
				mu.Lock()
				done++
				if o.Progress != nil {
					o.Progress(done, total)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return values, nil
}

// Spread is the median, the least and the most of a cell that is not empty. Of an even number of
// values the lower one in the middle is the median.
func (c Cell) Spread() (median, least, most float64) {
	s := slices.Sorted(slices.Values(c))
	return s[(len(s)-1)/2], s[0], s[len(s)-1]
}
