package experiment

func sinkholeReport() Report {
	return Report{
		Lines: []Line{
			{
				ID: "H1", Says: "one replica of the fleet that fails at once costs 2 % of the queries without aversion, and at most 0.2 % with it",
				Check: func(s Seen) []Claim {
					return AllOf(
						AtLeast(s.At("failed", "one at 0.9", "off"), 2),
						AtMost(s.At("failed", "one at 0.9", "shipped"), 0.2))
				},
				Known: "how much such a replica attracts differs from seed to seed, and H2 holds",
			},
			{
				ID: "H2", Says: "as H1, in the mean", Mean: true,
				Check: func(s Seen) []Claim {
					return AllOf(
						AtLeast(s.At("failed", "one at 0.9", "off"), 2),
						AtMost(s.At("failed", "one at 0.9", "shipped"), 0.2))
				},
			},
			{
				ID: "H3", Says: "where nothing fails, aversion costs nothing",
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, calm := range []string{"calm 0.9", "calm 1.1"} {
						out = append(out, AtMost(s.At("p99.9", calm, "shipped").Over(s.At("p99.9", calm, "off")), 1)...)
					}
					return out
				},
			},
			{
				ID: "H4", Says: "a replica that fails every query has half of its share within 2 s",
				Check: func(s Seen) []Claim {
					return AllOf(
						AtMost(s.At("half", "one at 0.9", "shipped"), 2),
						AtMost(s.At("half", "one at 1.1", "shipped"), 2),
						AtMost(s.At("half", "a tenth of all", "shipped"), 2),
						AtMost(s.At("half", "one of four", "shipped"), 2))
				},
			},
		},
		Plots: []Plot{
			{
				Title: "Replicas that fail fast look idle",
				About: "What is lost while they fail, and what the rest wait, under rules that keep clients away from them.",
				X:     "situation", Series: "rule", Y: []string{"failed", "p99.9"}, Lead: "shipped", LogY: true,
			},
			{
				Title: "How long it takes to turn away from them, and to come back",
				X:     "situation", Series: "rule", Y: []string{"half", "back"}, Lead: "shipped", LogY: true,
			},
		},
	}
}
