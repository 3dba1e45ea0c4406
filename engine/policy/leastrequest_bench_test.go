package policy_test

import (
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Unequal weights, i%4+1, and i%17 queries in flight: the form that draws by share.
func BenchmarkLeastRequestWeighted(b *testing.B) {
	for _, spec := range []string{"least_request", "least_request bias=0", "least_request slow_start=1m"} {
		for _, n := range []int{8, 64, 512, 4096} {
			b.Run(spec+"/"+strconv.Itoa(n), func(b *testing.B) {
				p, err := policy.Parse(spec)
				if err != nil {
					b.Fatal(err)
				}
				e := engine.New(p, engine.Config{})
				cs := make([]engine.Candidate, n)
				for i := range cs {
					cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(i%4 + 1)}
				}
				if err := e.SetCandidates(0, cs[1:]); err != nil {
					b.Fatal(err)
				}
				if err := e.SetCandidates(1, cs); err != nil {
					b.Fatal(err)
				}
				var d engine.Decision
				for range 8 * n {
					_ = e.Decide(&engine.Query{}, &d)
				}
				q := engine.Query{Now: 1000}
				b.ReportAllocs()
				for b.Loop() {
					q.Now++
					if err := e.Decide(&q, &d); err != nil {
						b.Fatal(err)
					}
					_ = e.Report(q.Now, engine.Report{ID: d.ID})
				}
			})
		}
	}
}
