package experiment

func ablationReport() Report {
	above, below := ablationRates[0].name, ablationRates[1].name
	// over is a change's column over that of Prequal as it is.
	over := func(s Seen, column, change, situation string) Value {
		return s.At(column, change, situation).Over(s.At(column, asShipped, situation))
	}
	return Report{
		Lines: []Line{
			{
				ID: "G1", Says: "unlimited reuse costs 15 % of p99 and half of the p99.9 of RIF",
				Check: func(s Seen) []Claim {
					return AllOf(
						AtLeast(over(s, "p99", "unlimited reuse", above), 1.15), AtLeast(over(s, "p99", "unlimited reuse", below), 1.15),
						AtLeast(over(s, "RIF p99.9", "unlimited reuse", above), 1.5), AtLeast(over(s, "RIF p99.9", "unlimited reuse", below), 1.5))
				},
			},
			{
				ID: "G2", Says: "with one probe per query, using a reading once costs 10 % of p99 against the budget of the formula",
				Check: func(s Seen) []Claim { return AtLeast(over(s, "p99", "single use", below), 1.1) },
			},
			{
				ID: "G3", Says: "one probe per query has at most 1.35 times the p99 of three",
				Check: func(s Seen) []Claim {
					return AtMost(s.At("p99", asShipped, below).Over(s.At("p99", asShipped, threeProbes)), 1.35)
				},
			},
			{
				ID: "G4", Says: "a pool of four that is ranked by itself has 1.5 times the p99.9 or more, and with the window at most 1.25 times",
				Check: func(s Seen) []Claim {
					return AllOf(
						AtLeast(over(s, "p99.9", "pool 4, window 4", above), 1.5), AtLeast(over(s, "p99.9", "pool 4, window 4", below), 1.5),
						AtMost(over(s, "p99.9", "pool 4", above), 1.25), AtMost(over(s, "p99.9", "pool 4", below), 1.25))
				},
			},
			{
				ID: "G5", Says: "a window of a thousand readings is within 10 % of p99 of one as long as the pool",
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, where := range []string{above, below} {
						r := s.At("p99", "window 1000", where).Over(s.At("p99", "window 16", where))
						out = append(out, AllOf(AtMost(r, 1.1), AtLeast(r, 0.9))...)
					}
					return out
				},
			},
		},
		Plots: []Plot{
			{
				Title: "What each mechanism is worth",
				About: "Latency and RIF at the tail when one thing of Prequal is changed.",
				X:     "change", Series: "situation", Y: []string{"p99", "p99.9", "RIF p99.9"}, Lead: below, LogY: true,
			},
		},
	}
}
