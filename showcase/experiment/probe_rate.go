package experiment

import "github.com/headroom-lb/headroom/showcase/sim"

// probeRates are those of the paper, four down to a half by square roots of two, and two below.
var probeRates = []string{"4", "2.83", "2", "1.41", "1", "0.71", "0.5", "0.35", "0.25"}

// removals are ways to let entries go while probes get fewer.
var removals = []struct {
	name    string
	spec    string
	fastest string // rate to begin with: above, it is the same as another
}{
	{"a quarter", " remove_rate=0.25", "4"},
	{"one", " remove_rate=1", "4"},
	// A reuse budget that is given is not derived, and then nothing is fitted to the rates.
	{"one, not fitted", " remove_rate=1 reuse=10", "1.41"},
}

func probeRate() Experiment {
	e := Experiment{
		Name: "probe-rate",
		About: "How few probes do, at one and a half times the allocation: RIF and latency from four probes per query down to a " +
			"quarter, with the paper's removal of 0.25 entries per query, and with one.",
		Keys:   []string{"probes per query", "removals per query"},
		Report: probeRateReport(),
	}
	var ts []trial
	for _, r := range removals {
		reached := false
		for _, rate := range probeRates {
			if reached = reached || rate == r.fastest; reached {
				ts = append(ts, trial{keys: []string{rate, r.name}, fleet: at(1.5, sim.T1()), spec: "prequal probe_rate=" + rate + r.spec})
			}
		}
	}
	return bench(e, choose("failed", "p50", "p99", "p99.9", "RIF p50", "RIF p90", "RIF p99", "blind"), ts)
}
