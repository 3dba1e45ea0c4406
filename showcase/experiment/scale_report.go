package experiment

func scaleReport() Report {
	return Report{
		Lines: []Line{
			{
				ID: "N1", Says: "Prequal's p99 in a fleet of 10,000 is within 10 % of that in a fleet of 1,000",
				Check: func(s Seen) []Claim {
					r := s.At("p99", "10000", "prequal").Over(s.At("p99", "1000", "prequal"))
					return AllOf(AtLeast(r, 0.9), AtMost(r, 1.1))
				},
			},
			{
				ID: "N2", Says: "a replica gets the same probes in fleets of every size, within 10 %",
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, n := range []string{"1000", "10000"} {
						r := s.At("probed", n, "prequal").Over(s.At("probed", "100", "prequal"))
						out = append(out, AllOf(AtLeast(r, 0.9), AtMost(r, 1.1))...)
					}
					return out
				},
			},
			{
				ID: "N3", Says: "and the simulator has the same events for a query, within 10 %",
				Check: func(s Seen) []Claim {
					var out []Claim
					for _, n := range []string{"1000", "10000"} {
						r := s.At("events", n, "prequal").Over(s.At("events", "100", "prequal"))
						out = append(out, AllOf(AtLeast(r, 0.9), AtMost(r, 1.1))...)
					}
					return out
				},
			},
		},
		Text: `A balancer of Prequal looks at a pool of sixteen, however large the fleet is, and a replica gets three probes for each query that it serves:
{{median "probed" "100" "prequal"}} a second in a fleet of 100 and {{median "probed" "10000" "prequal"}} in one of 10,000. Latency does not depend on the size either. Fleets of
a hundred differ among each other, as their neighbours are few; those of a thousand and ten thousand are alike. Two choices by a client's own counts see less of the fleet
the more clients there are.

What a run costs is not in the table, because it is not the same twice: ` + "`go test ./showcase/sim -bench Events -run none`" + ` measures time and memory.

{{define "differs"}}The paper has one size, a hundred by a hundred.{{end}}`,
		Plots: []Plot{
			{
				Title: "A hundred replicas, or ten thousand",
				About: "Latency at the tail, and the probes that a replica bears, by the size of the fleet.",
				X:     "replicas", Series: "rule", Y: []string{"p99", "RIF p99", "probed"}, Lead: "prequal", LogX: true,
			},
		},
	}
}
