package demo

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/loadgen"
	"github.com/headroom-lb/headroom/engine"
)

// Result is one policy's part of the comparison, over the rounds that count, which send the same queries to every
// policy. Latencies are in milliseconds from the intended instant. What rounds that were repeated lost is kept apart,
// so that it is not hidden.
type Result struct {
	Spec    string `json:"spec"`
	Queries int64  `json:"queries"`
	OK      int64  `json:"ok"`
	Errors  int64  `json:"errors"` // answered, but not with 200
	Lost    int64  `json:"lost"`   // not answered

	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
	Max  float64 `json:"max_ms"`

	RoundP99 []float64 `json:"round_p99_ms"` // of each round by itself: the spread
	LagP99   float64   `json:"generator_lag_p99_ms"`
	Repeated Repeated  `json:"repeated"`

	Regimes        map[string]uint64 `json:"regimes"`
	Causes         map[string]uint64 `json:"fallback_causes"`
	Probes         Probes            `json:"probes"`
	ProbesPerQuery float64           `json:"probes_per_query"`
	Traps          uint64            `json:"traps"`
	CPU            float64           `json:"cpu_cores"` // of this whole process: replicas, balancers and generator
	Fit            *Fit              `json:"fit,omitempty"`

	label string
	load  *loadgen.Report
	cpu   time.Duration
	wall  time.Duration
}

// Repeated counts the rounds that do not count because the generator was late, and what was seen in them.
type Repeated struct {
	Rounds  int   `json:"rounds"`
	Queries int64 `json:"queries"`
	Errors  int64 `json:"errors"`
	Lost    int64 `json:"lost"`
}

// Probes counts what the probers did.
type Probes struct {
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Failed   uint64 `json:"failed"`
	Late     uint64 `json:"late"` // of those that failed: the answer did not come in time
	Shed     uint64 `json:"shed"`
}

// Fit is what a policy that keeps a pool derived for this fleet.
type Fit struct {
	Pool        uint32  `json:"pool"`
	RemoveRate  float64 `json:"remove_rate"`
	ReuseBudget float64 `json:"reuse_budget"`
	SmallFleet  bool    `json:"small_fleet_rule"`
}

// perUnit is the fixed-point unit of the engine's rates.
const perUnit = 10_000

func newFit(f engine.Fit) *Fit {
	if f.Pool == 0 {
		return nil
	}
	return &Fit{
		Pool: f.Pool, RemoveRate: float64(f.RemoveRate) / perUnit,
		ReuseBudget: float64(f.ReuseBudget) / perUnit, SmallFleet: f.Shrunk,
	}
}

func newResult(spec string) *Result {
	return &Result{Spec: spec, Regimes: map[string]uint64{}, Causes: map[string]uint64{}, load: loadgen.NewReport()}
}

// newResults makes a result for each spec. They are labelled with the policy's name, or with the spec as given where
// several have that name.
func newResults(specs []string) []*Result {
	results := make([]*Result, len(specs))
	uses := map[string]int{}
	for i, spec := range specs {
		results[i] = newResult(spec)
		uses[results[i].policy()]++
	}
	for _, r := range results {
		if uses[r.policy()] > 1 {
			r.label = r.Spec
		}
	}
	return results
}

// repeat notes a round that does not count.
func (r *Result) repeat(rep *loadgen.Report) {
	r.Repeated.Rounds++
	r.Repeated.Queries += rep.Sent
	r.Repeated.Errors += rep.Failed
	r.Repeated.Lost += rep.Lost
}

// addLoad adds one round and brings the summary up to date.
func (r *Result) addLoad(rep *loadgen.Report, cpu, wall time.Duration) {
	r.cpu += cpu
	r.wall += wall
	r.Queries, r.OK = r.Queries+rep.Sent, r.OK+rep.OK
	r.Errors, r.Lost = r.Errors+rep.Failed, r.Lost+rep.Lost
	r.load.Merge(rep)
	r.RoundP99 = append(r.RoundP99, ms(rep.Latency.ValueAtQuantile(99)))
	l := r.load
	r.P50, r.P90 = ms(l.Latency.ValueAtQuantile(50)), ms(l.Latency.ValueAtQuantile(90))
	r.P99, r.P999 = ms(l.Latency.ValueAtQuantile(99)), ms(l.Latency.ValueAtQuantile(99.9))
	r.Max, r.LagP99 = ms(l.Latency.Max()), ms(l.Lag.ValueAtQuantile(99))
	if r.wall > 0 {
		r.CPU = r.cpu.Seconds() / r.wall.Seconds()
	}
	if r.Queries > 0 {
		r.ProbesPerQuery = float64(r.Probes.Sent) / float64(r.Queries)
	}
}

// name is what the result is called in text.
func (r *Result) name() string { return cmp.Or(r.label, r.policy()) }

// policy is the policy's name without its settings.
func (r *Result) policy() string {
	name, _, _ := strings.Cut(r.Spec, " ")
	return name
}

// spread is the lowest and the highest p99 of a single round.
func (r *Result) spread() (lo, hi float64) {
	return slices.Min(r.RoundP99), slices.Max(r.RoundP99)
}

// ms turns a histogram's microseconds into milliseconds.
func ms(us int64) float64 { return float64(us) / 1000 }
