package experiment

func estimatorReport() Report {
	fast := estimated[0].name
	over := func(s Seen, column, name, fleet string) Value {
		return s.At(column, name, fleet).Over(s.At(column, asShipped, fleet))
	}
	return Report{
		Lines: []Line{
			{
				ID: "G6", Says: "a memory of one second costs 5 % of p99.9 where machines are fast and slow",
				Check: func(s Seen) []Claim { return AtLeast(over(s, "p99.9", "memory 1 s", fast), 1.05) },
			},
			{
				ID: "G7", Says: "nothing else that was tried is better than what is shipped by more than 5 % of p99", Mean: true,
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, e := range estimators[1:] {
						for _, f := range estimated {
							out = append(out, AtLeast(over(s, "p99", e.name, f.name), 0.95)...)
						}
					}
					return out
				},
			},
		},
		Plots: []Plot{
			{
				Title: "What replicas should say of their latency",
				About: "Latency at the tail by what an estimate is made of.",
				X:     "estimator", Series: "fleet", Y: []string{"p99", "p99.9"}, Lead: fast,
			},
		},
	}
}
