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
				Known: "half of six replicas is a pool of three, fewer than it need be; the whole fleet in the pool with fewer uses of an entry does better",
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
		Text: `With two replicas the paper's settings would decide blindly: the pool is never larger than what is removed, and {{median "failed" "2" "prequal, not fitted"}} % of the
queries fail. [Fitted](decisions/0004-small-fleets.md), nothing fails at any size, and p99 is below that of RIF alone everywhere:
{{median "p99" "4" "prequal"}} against {{median "p99" "4" "prequal by RIF alone"}} ms with four replicas, {{median "p99" "16" "prequal"}} against
{{median "p99" "16" "prequal by RIF alone"}} with sixteen. Two random choices by the client's own counts are worse the more clients there are, and a random draw fails.

The fit does not win everywhere. From six replicas on the paper's pool of sixteen, which then holds most of the fleet, serves as well without any fit, if the reuse budget of a large
fleet, 1.316, is given: {{median "p99" "6" "prequal, not fitted"}} ms with six replicas, where the fit has {{median "p99" "6" "prequal"}}. And from sixteen on it
has the shorter end of the tail: p99.9 of {{median "p99.9" "24" "prequal, not fitted"}} ms with twenty-four replicas against {{median "p99.9" "24" "prequal"}}, with fewer
queries in flight. The budget is what differs: it grows to four uses of an entry as its denominator falls to a half, by the paper's formula inside its domain as well (thirty-two replicas).

{{define "differs"}}The paper has no fleet of fewer than a hundred.{{end}}`,
		Plots: []Plot{
			{
				Title: "Fleets too small for the paper's settings",
				About: "Latency at the tail by the number of replicas, with as many clients.",
				X:     "replicas", Series: "rule", Y: []string{"p99", "p99.9"}, Lead: "prequal", LogX: true, LogY: true,
			},
		},
	}
}
