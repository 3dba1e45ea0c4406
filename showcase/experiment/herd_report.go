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
		Text: `A herd is clients that all prefer the same replica at once, on news that is old or that only they have. A rule that counts its own queries has only its own
news: as one balancer ` + "`least_loaded`" + ` is near the best there is, with {{median "p99" "1" "least_loaded"}} ms of p99, and through a hundred it has
{{median "p99" "100" "least_loaded"}} ms, for nobody sees what the others have sent. So has ` + "`power_of_two`" + `. These do not run together, they are blind: bunching stays
near one.

Prequal asks the replicas, and a replica answers for all balancers. Through one balancer its p99 is {{median "p99" "1" "prequal"}} ms, through a hundred
{{median "p99" "100" "prequal"}}, and through a thousand {{median "p99" "1000" "prequal"}}: there each has few queries a second, so few readings, and they are old when it
decides. ` + "`prequal mode=sync`" + ` asks anew for each query and does not depend on how many balancers there are at all
({{median "p99" "1" "prequal mode=sync"}} and {{median "p99" "1000" "prequal mode=sync"}} ms). It is the better mode for many balancers with little traffic each.

Probes cost a replica the same whoever sends them, {{median "probed" "100" "prequal"}} a second, for they come with queries. Polls do not: those of
` + "`yarp_power_of_two`" + ` grow with the balancers.

Bunching of {{median "bunching" "100" "prequal"}} is the reuse of readings: a client that has a good entry uses it again soon.

{{define "differs"}}The paper does not vary the number of its clients.{{end}}`,
		Plots: []Plot{
			{
				Title: "One balancer, or a thousand",
				About: "The tail of RIF and how queries bunch, by the number of balancers that send the same queries.",
				X:     "balancers", Series: "rule", Y: []string{"RIF p99", "bunching", "probed"}, Lead: "prequal", LogX: true, LogY: true,
			},
		},
	}
}
