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
		Text: `
On equal machines the paper's finding holds: the more RIF in the sum, the better. p99 falls from {{median "p99" "equal" "linear" "0"}} ms by latency alone
to {{median "p99" "equal" "linear" "1"}} by RIF alone, and most of that with the first fiftieth ({{median "p99" "equal" "linear" "0.02"}}).
Prequal has {{median "p99" "equal" "prequal"}}: where all machines are equal latency has little to tell.
{{define "differs"}}
- Where half of the machines are slow, RIF alone is not the best: p99 {{median "p99" "half slow" "linear" "1"}} ms, and
  {{median "p99" "half slow" "linear" "0.05"}} with a share of 0.05. RIF does not tell a slow machine with few queries from a fast one. The paper has RIF alone best on
  such a fleet too; replicas here share a processor, so that latency itself grows with RIF, and says more.
- For the same reason no share is as bad as the published ones: at 0.769 p99 is {{median "p99" "half slow" "linear" "0.769"}} ms, and about
  {{paper "p99" "half slow" "linear" "0.769"}} in the paper.
{{end}}`,
	}
}
