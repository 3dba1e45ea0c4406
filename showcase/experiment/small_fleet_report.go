package experiment

import "strconv"

func smallFleetReport() Report {
	// against compares the p99 of Prequal as it is with another's in each fleet.
	against := func(s Seen, other string, bound float64) (out []Claim) {
		for _, n := range smallSizes {
			size := strconv.Itoa(n)
			out = append(out, AtMost(s.At("p99", size, "prequal").Over(s.At("p99", size, other)), bound)...)
		}
		return out
	}
	return Report{
		Lines: []Line{
			{
				ID: "K1", Says: "fitted to a small fleet, Prequal's p99 is at most 5 % above that of RIF alone", Mean: true,
				Check: func(s Seen) []Claim { return against(s, "prequal by RIF alone", 1.05) },
			},
			{
				ID: "K2", Says: "and at most 5 % above that of the paper's settings, not fitted", Mean: true,
				Check: func(s Seen) []Claim { return against(s, "prequal, not fitted", 1.05) },
			},
			{
				ID: "K3", Says: "and at most that of two random choices by the client's own counts", Mean: true,
				Check: func(s Seen) []Claim { return against(s, "power_of_two", 1) },
			},
			{
				ID: "K4", Says: "and at most that of a random draw", Mean: true,
				Check: func(s Seen) []Claim { return against(s, "random", 1) },
			},
		},
		Plots: []Plot{
			{
				Title: "Fleets too small for the paper's settings",
				About: "Latency at the tail by the number of replicas, with as many clients.",
				X:     "replicas", Series: "rule", Y: []string{"p99", "p99.9"}, Lead: "prequal", LogX: true, LogY: true,
			},
		},
	}
}
