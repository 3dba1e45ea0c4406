package experiment

func linearReport() Report {
	const equal, slow = "equal", "half slow"
	return Report{
		Published: Cite("Fig. 10 (read off)", `
			fleet     | rule   | lambda || p50 | p90 | p99 | p99.9 | RIF p99
			half slow | linear | 0.769  || 85 | 600 | 3000 | TO | 200
			half slow | linear | 1      || 75 | 200 | 360 | 450 | 10
		`),
		Lines: []Line{
			{
				ID: "D1", Says: "on equal machines, p99, p99.9 and the p99.9 of RIF do not rise with the share of RIF, by more than 5 % from one to the next",
				Check: func(s Seen) (out []Claim) {
					for _, column := range []string{"p99", "p99.9", "RIF p99.9"} {
						out = append(out, NotRising(s.Each(column, equal, "linear"), 0.05)...)
					}
					return out
				},
			},
			{
				ID: "D2", Says: "on equal machines, p99.9 by latency alone is at least 1.5 times that with a share of 0.98",
				Check: func(s Seen) []Claim {
					return AtLeast(s.At("p99.9", equal, "linear", "0").Over(s.At("p99.9", equal, "linear", "0.98")), 1.5)
				},
			},
		},
		Plots: []Plot{{
			Title: "The share of RIF in the sum",
			About: "On equal machines a little RIF is nearly enough, and more does no harm. Where half of the machines are slow the best share is small, for RIF alone does not see which they are; the paper has RIF alone best.",
			X:     "lambda", XLabel: "lambda, the share of RIF", Series: "fleet", Y: []string{"p99", "p99.9"}, Where: []string{"linear"}, Lead: slow, LogY: true,
		}},
		Text: `TODO`,
	}
}
