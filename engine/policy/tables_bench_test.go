package policy_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// tabled is the fleet of the seed library's benchmarks.
func tabled(n int) []engine.Candidate {
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.IDOf(fmt.Sprintf("backend-%04d", i)), Weight: engine.Weight(i%4 + 1)}
	}
	return cs
}

// tables are the policies with a table to build.
var tables = []string{"ring_hash", "maglev", "maglev weighted=true"}

// The cost of a decision by key alone, without the report that BenchmarkDecide adds.
func BenchmarkKeyed(b *testing.B) {
	for _, spec := range tables {
		for _, n := range []int{8, 64, 512, 2048} {
			b.Run(spec+"/"+strconv.Itoa(n), func(b *testing.B) {
				e, keys := fixture(b, spec, n, false)
				var d engine.Decision
				q := engine.Query{}
				k := 0
				b.ReportAllocs()
				for b.Loop() {
					if k++; k == len(keys) {
						k = 0
					}
					q.Key = keys[k]
					if err := e.Decide(&q, &d); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The cost of a change: the middle member leaves, comes back, or turns its status.
func BenchmarkChange(b *testing.B) {
	for _, spec := range tables {
		for _, n := range []int{8, 64, 512, 2048} {
			all := tabled(n)
			lacking := append(append([]engine.Candidate{}, all[:n/2]...), all[n/2+1:]...)
			id := all[n/2].ID
			changes := []struct {
				name         string
				before, then func(e *engine.Engine) error
			}{
				{"leave", func(e *engine.Engine) error { return e.SetCandidates(0, all) }, func(e *engine.Engine) error { return e.SetCandidates(0, lacking) }},
				{"return", func(e *engine.Engine) error { return e.SetCandidates(0, lacking) }, func(e *engine.Engine) error { return e.SetCandidates(0, all) }},
				{"drain", func(e *engine.Engine) error { return e.SetStatus(0, id, engine.StatusReady) }, func(e *engine.Engine) error { return e.SetStatus(0, id, engine.StatusDraining) }},
				{"ready", func(e *engine.Engine) error { return e.SetStatus(0, id, engine.StatusDraining) }, func(e *engine.Engine) error { return e.SetStatus(0, id, engine.StatusReady) }},
			}
			for _, c := range changes {
				b.Run(spec+"/"+c.name+"/"+strconv.Itoa(n), func(b *testing.B) {
					e := start(b, spec, all)
					for range b.N {
						b.StopTimer()
						if err := c.before(e); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						if err := c.then(e); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
