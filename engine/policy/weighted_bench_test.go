package policy_test

import (
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// weighted is a fleet whose weights go round 1 to 4.
func weighted(tb testing.TB, spec string, n int) (*engine.Engine, []engine.Candidate) {
	p, err := policy.Parse(spec)
	if err != nil {
		tb.Fatal(err)
	}
	e := engine.New(p, engine.Config{})
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.IDOf("replica-" + strconv.Itoa(i)), Weight: engine.Weight(i%4 + 1)}
	}
	if err := e.SetCandidates(0, cs); err != nil {
		tb.Fatal(err)
	}
	return e, cs
}

// BenchmarkWeighted is a decision alone, on a fleet whose weights go round 1 to 4; "distinct" has
// no two weights alike, "retry" avoids one replica, "change" meets a fleet that lost or regained
// its middle member.
func BenchmarkWeighted(b *testing.B) {
	for _, name := range []string{"round_robin", "random", "weighted_random", "smooth_weighted_round_robin"} {
		for _, n := range []int{8, 64, 512, 10000} {
			run := func(what string, before func(e *engine.Engine, cs []engine.Candidate, q *engine.Query)) {
				b.Run(name+"/"+strconv.Itoa(n)+"/"+what, func(b *testing.B) {
					e, cs := weighted(b, name+" seed=7", n)
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
				e, _ := weighted(b, name+" seed=7", n)
				var d engine.Decision
				q := engine.Query{}
				for range b.N {
					q.Now += 1000
					_ = e.Decide(&q, &d)
				}
			})
			b.Run(name+"/"+strconv.Itoa(n)+"/distinct", func(b *testing.B) {
				e, cs := weighted(b, name+" seed=7", n)
				for i := range cs {
					cs[i].Weight = engine.Weight(i + 1)
				}
				_ = e.SetCandidates(0, cs)
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
