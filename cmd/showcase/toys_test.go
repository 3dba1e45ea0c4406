package main

import (
	"context"
	"math"

	"github.com/headroom-lb/headroom/showcase/experiment"
)

// toys are experiments that take no time, with everything that an experiment may say. The test
// binary has them instead of the real ones when it is told so.
func toys() []experiment.Experiment {
	e := experiment.Experiment{
		Name: "toy", About: "Shows that a toy can be measured.", Keys: []string{"load", "rule"},
		Columns: []experiment.Column{
			{Name: "p99", Unit: "ms", About: "of all", Within: 5000, Beyond: "timeout"}, {Name: "failed", Unit: "%", About: "of all"},
		},
		Size: experiment.Size{Seeds: 3, Replicas: 10, Clients: 5},
		Report: experiment.Report{
			Published: experiment.Cite("Fig. 7", `
				load | rule   || p99
				70 % | steady || 101
				90 % | shaky  || TO
			`),
			Lines: []experiment.Line{
				{ID: "T1", Says: "steady stays under 200 ms", Check: func(s experiment.Seen) []experiment.Claim {
					return experiment.EachAtMost(s.Each("p99", "steady"), 200)
				}},
				{ID: "T2", Says: "shaky fails nothing", Known: "it is shaky", Check: func(s experiment.Seen) []experiment.Claim {
					return experiment.AtMost(s.At("failed", "90 %", "shaky"), 0)
				}},
			},
			Plots: []experiment.Plot{
				{Title: "A toy", X: "load", Series: "rule", Y: []string{"p99", "failed"}, Lead: "steady"},
				{Title: "A toy in rows", X: "rule", Series: "load", Y: []string{"p99"}, LogY: true},
			},
			Text: `Steady has {{median "p99" "70 %" "steady"}} ms, and {{paper "p99" "70 %" "steady"}} in the paper.
				{{- define "differs"}}Shaky is shaky: {{most "p99" "90 %" "shaky"}}.{{end}}`,
		},
	}
	for i, load := range []string{"70 %", "90 %"} {
		e.Add([]string{load, "steady"}, func(_ context.Context, seed uint64) ([]float64, error) {
			return []float64{100 + float64(i)*10 + float64(seed), 0}, nil
		})
		e.Add([]string{load, "shaky"}, func(_ context.Context, seed uint64) ([]float64, error) {
			return []float64{never(float64(seed)*300, i == 1 && seed == 2), float64(seed) / 3}, nil
		})
	}
	bad := experiment.Experiment{
		Name: "bad", About: "Shows a line that fails.", Keys: []string{"case"}, Columns: []experiment.Column{{Name: "v", Unit: "%", About: "of it"}},
		Size: experiment.Size{Seeds: 2, Replicas: 10, Clients: 5},
		Report: experiment.Report{Lines: []experiment.Line{{ID: "X1", Says: "v is small", Check: func(s experiment.Seen) []experiment.Claim {
			return experiment.AtMost(s.At("v", "it"), 1)
		}}}},
	}
	bad.Add([]string{"it"}, func(_ context.Context, seed uint64) ([]float64, error) { return []float64{float64(seed)}, nil })
	return []experiment.Experiment{e, bad}
}

func never(v float64, is bool) float64 {
	if is {
		return math.Inf(1)
	}
	return v
}
