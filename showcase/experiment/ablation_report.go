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
						AtLeast(over(s, "p99.9", "pool 4, ranked by itself", above), 1.5), AtLeast(over(s, "p99.9", "pool 4, ranked by itself", below), 1.5),
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
		Text: `A reading must not be used for ever: without a limit the p99 of one probe per query is {{median "p99" "unlimited reuse" "0.9, 1 probe"}} ms
and not {{median "p99" "as shipped" "0.9, 1 probe"}}. Nor must it be used once where probes are few: {{median "p99" "single use" "0.9, 1 probe"}} ms, for
{{median "blind" "single use" "0.9, 1 probe"}} % of the decisions find the pool empty. The budget of the formula lies between. With three probes per query single use does no harm.

RIF has to limit latency. By latency alone {{median "failed" "by latency alone" "0.9, 1 probe"}} % of the queries fail below the allocation. One query in six
needs no work at all, comes back from a replica that drowns at once, and is the only one there that does, so that its estimate praises it; where every query
needs the same, the same rule fails nothing. By RIF alone nothing fails, and p99 is
{{median "p99" "by RIF alone" "1.1, 3 probes"}} ms against {{median "p99" "as shipped" "1.1, 3 probes"}}.

A pool of four does as well as one of sixteen, in less RIF, as long as a window says what is hot
({{median "p99.9" "pool 4" "1.1, 3 probes"}} and {{median "p99.9" "as shipped" "1.1, 3 probes"}} ms of p99.9). Ranked by itself none of its entries is ever hot:
{{median "failed" "pool 4, ranked by itself" "1.1, 3 probes"}} % fail. That is why a small fleet keeps its window. Two entries are too few at three probes per query and one
removal, and thirty-two are old.

Which entry is removed matters little, whether the worst, the oldest or none, and so does an age limit from 100 ms on. That one RIF is added to an entry for
each use cannot be switched off.

{{define "differs"}}The paper has no such table. It says that more than sixteen entries help little; here thirty-two do harm, for they are older. By latency alone its
testbed has a chaotic tail at 0.75 of the allocation and fails nothing; most of its machines have cores to spare, and so a replica that is praised too much
can still serve what comes.{{end}}`,
		Plots: []Plot{
			{
				Title: "What each mechanism is worth",
				About: "Latency and RIF at the tail when one thing of Prequal is changed.",
				X:     "change", Series: "situation", Y: []string{"p99", "p99.9", "RIF p99.9"}, Lead: below, LogY: true,
			},
		},
	}
}
