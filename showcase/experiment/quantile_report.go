package experiment

func quantileReport() Report {
	const w, w16, w1000 = "window 128", "window 16", "window 1000"
	return Report{
		Published: append(Cite("Fig. 9", `
			window     | quantile || p50 | p90 | p99 | p99.9
			window 128 | 0        || 34.5 | 93 | 162 | 210
			window 128 | 0.99     || 31 | 75 | 142 | 198
			window 128 | 0.999    || - | - | 148 | 210
			window 128 | 1        || - | - | 178 | -
		`), Cite("Fig. 9 (read off)", `
			window     | quantile || p90 | p99 | RIF p50 | RIF p90 | RIF p99
			window 128 | 0        || - | - | 4.8 | 7.1 | 9.6
			window 128 | 0.59     || 87 | 156 | 4.8 | 7.2 | 9.7
			window 128 | 0.73     || 83 | 152 | 4.8 | 7.3 | 10
			window 128 | 0.81     || 81 | 150 | 4.8 | 7.7 | 10.6
			window 128 | 0.9      || 77 | 145 | 4.8 | 9 | 11.5
			window 128 | 0.99     || - | - | 4.8 | 9.8 | 13
			window 128 | 0.999    || 77 | - | 4.7 | 10 | 15
			window 128 | 1        || 82 | - | 4.7 | 10.3 | 24
		`)...),
		Lines: []Line{
			{
				ID: "C1", Says: "latency pays: p99 at a quantile of 0.84 is at most 0.95 of that by RIF alone",
				Check: func(s Seen) []Claim { return AtMost(s.At("p99", w, "0.84").Over(s.At("p99", w, "0")), 0.95) },
			},
			{
				ID: "C2", Says: "latency alone does not: p99.9 at 1 is at least 1.5 times that at 0.84", Mean: true,
				Check: func(s Seen) []Claim { return AtLeast(s.At("p99.9", w, "1").Over(s.At("p99.9", w, "0.84")), 1.5) },
			},
			{
				ID: "C3", Says: "a little control of RIF goes a long way: its p99.9 at 1 is at least 1.5 times that at 0.84, and at 0.59 at most 1.35 times that by RIF alone",
				Check: func(s Seen) []Claim {
					return AllOf(
						AtLeast(s.At("RIF p99.9", w, "1").Over(s.At("RIF p99.9", w, "0.84")), 1.5),
						AtMost(s.At("RIF p99.9", w, "0.59").Over(s.At("RIF p99.9", w, "0")), 1.35))
				},
			},
		},
		Plots: []Plot{
			{
				Title: "From RIF alone to latency alone",
				About: "The tail gets better until nearly no entry is hot, and breaks where none is. The paper's figures, of a faster fleet, have the same shape.",
				X:     "quantile", Series: "window", Y: []string{"p99", "p99.9"}, Lead: w, LogY: true,
			},
			{
				Title: "What it costs in RIF",
				About: "The upper tail of RIF grows with the quantile, slowly at first.",
				X:     "quantile", Series: "window", Y: []string{"RIF p99.9", "old"}, Lead: w,
			},
		},
		Text: `
The more entries count as cold, the more queries go to the machines that are fast: {{median "old" "window 128" "0"}} % on the slow half by RIF
alone, {{median "old" "window 128" "0.84"}} % at 0.84, and p99 falls from {{median "p99" "window 128" "0"}} to
{{median "p99" "window 128" "0.84"}} ms. At 1, where nothing is ever hot, p99.9 is {{median "p99.9" "window 128" "1"}} ms, and that of RIF
{{median "RIF p99.9" "window 128" "1"}} where it was {{median "RIF p99.9" "window 128" "0.84"}}. As in the paper, hardly a decision is made by RIF above
0.5 ({{median "hot" "window 128" "0.59"}} % at 0.59): with sixteen entries one is nearly always cold. The threshold works by what it excludes.

"all latencies" is the same fleet with replicas that take queries without any work, one in six, for latencies. They finish at once,
and where nothing else does, a replica that is far behind reports the least latency of all: at 0.99
{{median "failed" "all latencies" "0.99"}} % of the queries fail, and at 0.84 {{median "failed" "all latencies" "0.84"}} %. The threshold protects from that, a quantile
near 1 does not.
{{define "differs"}}
- The scale: a query is 60 ms of work here and some 28 ms in the paper's fleet, the load 0.94 and not 0.75, and slow replicas have neighbours.
  Shapes compare, milliseconds do not.
- Prequal as it is ranks over a window of readings, not over the entries of the pool; the engine has no such threshold. A window of 16 is the
  nearest to it: there a quantile above 15/16 means the greatest of the last sixteen readings.
- All other fleets of the paper here keep queries without work out of the replicas' estimates. The paper does not say that it did so; but
  with them in, latency alone fails queries by the percent, and the published tail at 1 is 2.4 times that at 0.99.
{{end}}`,
	}
}
