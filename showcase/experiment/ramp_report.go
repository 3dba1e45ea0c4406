package experiment

func rampReport() Report {
	return Report{
		Published: append(Cite("Fig. 6", `
			load | rule                 || failed | p50 | p90 | p99 | p99.9
			0.75 | weighted_round_robin || 0 | 80 | 182 | 265 | 325
			0.75 | prequal              || 0 | 80 | 182 | 265 | 325
			0.83 | weighted_round_robin || 0 | 80 | 182 | 265 | 325
			0.83 | prequal              || 0 | 80 | 182 | 265 | 325
			0.93 | weighted_round_robin || 0 | 80 | 182 | 265 | 325
			0.93 | prequal              || 0 | 80 | 182 | 265 | 325
			1.03 | weighted_round_robin || - | - | - | 335 | TO
			1.03 | prequal              || 0 | - | - | - | -
			1.14 | prequal              || 0 | - | - | - | -
			1.27 | weighted_round_robin || - | - | 203 | TO | TO
			1.27 | prequal              || 0 | - | - | - | -
			1.41 | prequal              || 0 | - | - | - | -
			1.57 | weighted_round_robin || - | 111 | TO | TO | TO
			1.57 | prequal              || 0 | - | - | - | -
			1.74 | weighted_round_robin || - | 150 | TO | TO | TO
			1.74 | prequal              || 0 | - | - | - | 700
		`), Cite("Fig. 6 (read off)", `
			load | rule                 || failed | p90 | p99.9
			1.03 | weighted_round_robin || 0.2 | - | -
			1.14 | weighted_round_robin || 0.8 | - | TO
			1.27 | weighted_round_robin || 1.8 | - | -
			1.27 | prequal              || - | - | 350
			1.41 | weighted_round_robin || 7.6 | 300 | -
			1.57 | weighted_round_robin || 12.8 | - | -
			1.74 | weighted_round_robin || 27 | - | -
		`)...),
		Lines: []Line{
			{
				ID: "A1", Says: "Prequal fails at most 0.01 % of the queries at each load",
				Check: func(s Seen) []Claim { return EachAtMost(s.Each("failed", "prequal"), 0.01) },
			},
			{
				ID: "A2", Says: "weighted round robin fails at most 0.05 % at 0.75 and 0.83",
				Check: func(s Seen) []Claim {
					return AllOf(AtMost(s.At("failed", "0.75", wrr), 0.05), AtMost(s.At("failed", "0.83", wrr), 0.05))
				},
			},
			{
				ID: "A3", Says: "it fails at least 3 % at 1.03",
				Check: func(s Seen) []Claim { return AtLeast(s.At("failed", "1.03", wrr), 3) },
			},
			{
				ID: "A4", Says: "it fails at least 18 % at 1.74",
				Check: func(s Seen) []Claim { return AtLeast(s.At("failed", "1.74", wrr), 18) },
			},
			{
				ID: "A5", Says: "Prequal's p99.9 is at most 2 s at 1.74, and its p99 at most 350 ms at 1.03",
				Check: func(s Seen) []Claim {
					return AllOf(AtMost(s.At("p99.9", "1.74", "prequal"), 2000), AtMost(s.At("p99", "1.03", "prequal"), 350))
				},
			},
			{
				ID: "A6", Says: "Prequal's p99 at 1.74 is at most four times that at 0.75",
				Check: func(s Seen) []Claim {
					return AtMost(s.At("p99", "1.74", "prequal").Over(s.At("p99", "0.75", "prequal")), 4)
				},
			},
			{
				ID: "A7", Says: "weighted round robin balances CPU better: its p99 of a second's CPU is at most 0.85 of Prequal's at 0.75 and 0.83",
				Check: func(s Seen) (out []Claim) {
					for _, load := range []string{"0.75", "0.83"} {
						out = append(out, AtMost(s.At("CPU p99", load, wrr).Over(s.At("CPU p99", load, "prequal")), 0.85)...)
					}
					return out
				},
			},
		},
		Plots: []Plot{
			{
				Title: "Latency while the load grows",
				About: "Weighted round robin keeps every replica at an equal share of CPU, and its tail is at the deadline as soon as that is more than some replicas have. Prequal's tail grows slowly, beyond the whole allocation too.",
				X:     "load", XLabel: "load, share of the allocation", Series: "rule", Y: []string{"p50", "p99", "p99.9"}, Lead: "prequal", LogY: true,
			},
			{
				Title: "Failures and CPU while the load grows",
				About: "The rule that balances CPU better fails more queries.",
				X:     "load", XLabel: "load, share of the allocation", Series: "rule", Y: []string{"failed", "CPU p99"}, Lead: "prequal",
			},
		},
		Text: `
At 1.74 times the allocation weighted round robin misses the deadline of {{median "failed" "1.74" "weighted_round_robin"}} % of the
queries (published: over 25 %), and Prequal of {{median "failed" "1.74" "prequal"}} % (0). Prequal's p99 grows from
{{median "p99" "0.75" "prequal"}} to {{median "p99" "1.74" "prequal"}} ms over the ramp, its p99.9 from
{{median "p99.9" "0.75" "prequal"}} to {{median "p99.9" "1.74" "prequal"}} ms (325 to about 700).

Balance of CPU is not what helps: at 0.83 the busiest seconds of replicas under weighted round robin use
{{median "CPU p99" "0.83" "weighted_round_robin"}} % of the allocation, under Prequal {{median "CPU p99" "0.83" "prequal"}} %. Prequal puts
work where there is room, beyond the allocation, and spares whoever has none.
{{define "differs"}}
- Weighted round robin breaks one step earlier: it fails {{median "failed" "0.93" "weighted_round_robin"}} % at 0.93, where the paper has
  none, and {{median "failed" "1.03" "weighted_round_robin"}} % at 1.03 (about 0.2). Here every machine is full for half of the time, and its isolation then takes
  some of the allocation; a replica at 0.93 of its allocation is over what it gets. The paper's neighbours, whatever ran in
  production, left more.
- The latencies inside the allocation are of another scale. A query here is 60 ms of work and three machines in ten need 1.8 times that; the
  published 80, 182, 265 and 325 ms are those of 80 ms on equal machines, and come out of such a fleet within 4 %
  ([Why to believe it](simulator.md#why-to-believe-it)).
- The paper's Prequal is at its low-load latencies up to 1.14. Here p99 grows from the start, {{median "p99" "1.14" "prequal"}} ms at 1.14, for the
  fastest replicas fill up first and the old ones have to help.
{{end}}`,
	}
}
