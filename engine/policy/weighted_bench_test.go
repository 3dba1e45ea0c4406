package policy_test

import (
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// oneToFour is a fleet whose weights go round 1 to 4.
func oneToFour(tb testing.TB, spec string, n int) (*engine.Engine, []engine.Candidate) {
	tb.Helper()
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.IDOf("replica-" + strconv.Itoa(i)), Weight: engine.Weight(i%4 + 1)}
	}
	e := start(tb, spec, cs)
	reportWeights(e, cs)
	return e, cs
}

// reportWeights has every replica say at instant 0 that it serves in proportion to its weight.
func reportWeights(e *engine.Engine, cs []engine.Candidate) {
	for _, c := range cs {
		_ = e.RecordLoad(0, c.ID, engine.LoadReport{Utilization: 5000, QPS: uint32(c.Weight) * 1000})
	}
}

// BenchmarkWeighted is a decision alone, on a fleet whose weights go round 1 to 4; "distinct" has
// no two weights alike, "retry" avoids one replica, "renew" comes a second later, "change" meets a fleet that lost or regained
// its middle member.
func BenchmarkWeighted(b *testing.B) {
	for _, name := range []string{"round_robin", "random", "weighted_random", "smooth_weighted_round_robin", "weighted_round_robin"} {
		spec := name + " seed=7"
		if name == "weighted_round_robin" {
			spec += " blackout_period=0"
		}
		for _, n := range []int{8, 64, 512, 10000} {
			run := func(what string, before func(e *engine.Engine, cs []engine.Candidate, q *engine.Query)) {
				b.Run(name+"/"+strconv.Itoa(n)+"/"+what, func(b *testing.B) {
					e, cs := oneToFour(b, spec, n)
					var d engine.Decision
					q := engine.Query{}
					for b.Loop() {
						before(e, cs, &q)
						q.Now += 1000
						_ = e.Decide(&q, &d)
					}
				})
			}
			b.Run(name+"/"+strconv.Itoa(n)+"/decide", func(b *testing.B) {
				e, _ := oneToFour(b, spec, n)
				var d engine.Decision
				q := engine.Query{}
				for range b.N {
					q.Now += 1000
					_ = e.Decide(&q, &d)
				}
			})
			b.Run(name+"/"+strconv.Itoa(n)+"/distinct", func(b *testing.B) {
				e, cs := oneToFour(b, spec, n)
				for i := range cs {
					cs[i].Weight = engine.Weight(i + 1)
				}
				_ = e.SetCandidates(0, cs)
				reportWeights(e, cs)
				var d engine.Decision
				q := engine.Query{}
				for range b.N {
					q.Now += 1000
					_ = e.Decide(&q, &d)
				}
			})
			run("retry", func(_ *engine.Engine, cs []engine.Candidate, q *engine.Query) {
				q.Tried = append(q.Tried[:0], cs[n/2].ID)
			})
			run("renew", func(_ *engine.Engine, _ []engine.Candidate, q *engine.Query) {
				q.Now += engine.Instant(engine.Second)
			})
			without := []engine.Candidate(nil)
			run("change", func(e *engine.Engine, cs []engine.Candidate, q *engine.Query) {
				if without == nil {
					without = append(append(without, cs[:n/2]...), cs[n/2+1:]...)
				}
				if q.Now/1000%2 == 0 {
					cs = without
				}
				_ = e.SetCandidates(q.Now, cs)
			})
		}
	}
}
