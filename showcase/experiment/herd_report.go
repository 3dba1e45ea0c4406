package experiment

func herdReport() Report {
	return Report{
		Lines: []Line{
			{
				ID: "M1", Says: "Prequal through 1,000 balancers has at most 1.5 times the p99 of RIF that it has through 100",
				Check: func(s Seen) []Claim {
					return AtMost(s.At("RIF p99", "1000", "prequal").Over(s.At("RIF p99", "100", "prequal")), 1.5)
				},
			},
			{
				ID: "M2", Says: "a replica gets the same probes however many balancers send them, within 10 %",
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, n := range []string{"10", "100", "1000"} {
						r := s.At("probed", n, "prequal").Over(s.At("probed", "1", "prequal"))
						out = append(out, AllOf(AtLeast(r, 0.9), AtMost(r, 1.1))...)
					}
					return out
				},
			},
			{
				ID: "M3", Says: "no number of balancers makes Prequal's queries bunch more than two and a half times as chance does",
				Check: func(s Seen) []Claim { return EachAtMost(s.Each("bunching", "prequal"), 2.5) },
			},
		},
		Plots: []Plot{
			{
				Title: "One balancer, or a thousand",
				About: "The tail of RIF and how queries bunch, by the number of balancers that send the same queries.",
				X:     "balancers", Series: "rule", Y: []string{"RIF p99", "bunching", "probed"}, Lead: "prequal", LogX: true, LogY: true,
			},
		},
	}
}
