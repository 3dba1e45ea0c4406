package demo

import "runtime"

// Document is what `demo --json` prints: the scenario, the machine, the results and the verdict.
type Document struct {
	Scenario ScenarioDocument `json:"scenario"`
	Machine  Machine          `json:"machine"`
	Results  []*Result        `json:"results"`
	Lost     int64            `json:"lost"`                 // in all, with the rounds that were repeated
	Errors   int64            `json:"errors"`               // in the same way
	LagP99   float64          `json:"generator_lag_p99_ms"` // the worst of any policy
	Verdict  string           `json:"verdict"`
}

// ScenarioDocument is the scenario in numbers with units in their names.
type ScenarioDocument struct {
	Replicas   int     `json:"replicas"`
	Noisy      int     `json:"noisy"`
	SlowFactor float64 `json:"slow_factor"`
	Slots      int     `json:"slots"`
	ServiceMS  float64 `json:"service_ms"`
	Balancers  int     `json:"balancers"`
	Rate       float64 `json:"rate_per_s"`
	Capacity   float64 `json:"capacity_per_s"`
	RoundMS    int64   `json:"round_ms"`
	Rounds     int     `json:"rounds"`
	Seed       uint64  `json:"seed"`
}

// Machine says where the figures come from.
type Machine struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// NewDocument gathers a finished run.
func NewDocument(s Scenario, results []*Result) Document {
	d := Document{
		Scenario: ScenarioDocument{
			Replicas: s.Replicas, Noisy: s.Noisy, SlowFactor: s.SlowFactor, Slots: s.Slots,
			ServiceMS: float64(s.Service.Microseconds()) / 1000, Balancers: s.Balancers,
			Rate: s.Rate, Capacity: s.Capacity(), RoundMS: s.Round().Milliseconds(), Rounds: s.Rounds, Seed: s.Seed,
		},
		Machine: Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
		Results: results, LagP99: worstLag(results), Verdict: Verdict(results),
	}
	for _, r := range results {
		d.Lost += r.Lost
		d.Errors += r.Errors
	}
	again := repeated(results)
	d.Lost, d.Errors = d.Lost+again.Lost, d.Errors+again.Errors
	return d
}
