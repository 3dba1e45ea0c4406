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
		Text: `TODO`,
	}
}
