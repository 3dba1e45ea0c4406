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
				Known: "more samples are better where conditions last, and worse where they change within half a second; nine lie between",
			},
		},
		Text: `A replica should remember for long. With a memory of one second p99.9 is {{median "p99.9" "memory 1 s" "fast and slow at 0.94"}} ms where machines are fast and slow, and
{{median "p99.9" "as shipped" "fast and slow at 0.94"}} with the ten seconds that are shipped; three are nearly enough, and thirty hardly better.

It should look at many queries. One sample, the last, has a p99 of {{median "p99" "1 sample" "three in ten old at 1.1"}} ms, nine have
{{median "p99" "as shipped" "three in ten old at 1.1"}} and thirty-three {{median "p99" "33 samples" "three in ten old at 1.1"}}: what a query needs varies more than the replica does. But in restless
fleets, where neighbours come and go within half a second, nine have {{median "p99" "as shipped" "restless at 1.1"}} and thirty-three
{{median "p99" "33 samples" "restless at 1.1"}} ms: many samples are old ones. Nine lie between; set more where conditions last.

And it should tell its latency at the present RIF: of all queries alike it sends too many to old machines ({{median "old" "of any RIF" "three in ten old at 1.1"}} %, not
{{median "old" "as shipped" "three in ten old at 1.1"}}), and p99 is {{median "p99" "of any RIF" "three in ten old at 1.1"}} ms. Queries that have not ended hardly count in a calm fleet.

Samples, memory, hold and whether open queries count are settings of the estimator (` + "`probe.EstimatorConfig`" + `); that the nearest RIF comes first is not.

{{define "differs"}}The paper gives no figures for its estimator.{{end}}`,
		Plots: []Plot{
			{
				Title: "What replicas should say of their latency",
				About: "Latency at the tail by what an estimate is made of.",
				X:     "estimator", Series: "fleet", Y: []string{"p99", "p99.9"}, Lead: fast,
			},
		},
	}
}
