package experiment

func neighboursReport() Report {
	return Report{
		Lines: []Line{{
			ID: "F1", Says: "at 1.1, two noisy machines in a hundred bring weighted round robin's p99 to at least 1.5 s, and Prequal's to at most 230 ms",
			Check: func(s Seen) []Claim {
				return AllOf(AtLeast(s.At("p99", "1.1", wrr), 1500), AtMost(s.At("p99", "1.1", "prequal"), 230))
			},
		}},
		Plots: []Plot{{
			Title: "Two machines in a hundred have nothing to spare",
			About: "They get 2 % of the queries of a rule that balances CPU, and make its tail.",
			X:     "rule", Series: "load", Y: []string{"p90", "p99", "p99.9"}, Lead: "1.1", LogY: true,
		}},
		Text: `
Two machines of a hundred are full for ever; all others have half as much again as they use. At 1.1 times the allocation weighted round robin's
p90 is {{median "p90" "1.1" "weighted_round_robin"}} ms, as good as that of who knows everything ({{median "p90" "1.1" "omniscient"}}), and its
p99 is {{median "p99" "1.1" "weighted_round_robin"}} ms: a tail that CPU does not show, for all replicas are at 110 % of it. Prequal's
p99 is {{median "p99" "1.1" "prequal"}} ms, and {{median "p99" "1.1" "omniscient"}} is the least there is. The paper argues with such a fleet and
has no figures of it.`,
	}
}
