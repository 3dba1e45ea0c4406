package policy_test

import (
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
)

// thirds is Poise's fixture: weights 1 to 4, three priorities, three localities.
func thirds(n int) []engine.Candidate {
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i] = engine.Candidate{
			ID: engine.IDOf("replica-" + strconv.Itoa(i)), Weight: engine.Weight(i%4 + 1),
			Priority: uint8(i % 3), Locality: engine.LocalityOf(string(rune('a' + i/3%3))),
		}
	}
	return cs
}

func BenchmarkDecideGroups(b *testing.B) {
	for _, spec := range []string{"priority seed=7", "locality seed=7", "locality seed=7 zone=b"} {
		for _, half := range []bool{false, true} {
			for _, n := range []int{8, 64, 512, 4096} {
				name := spec + "/whole/"
				if half {
					name = spec + "/half down/"
				}
				b.Run(name+strconv.Itoa(n), func(b *testing.B) {
					cs := thirds(n)
					for i := range cs {
						if half && i%2 == 0 {
							cs[i].Status = engine.StatusUnavailable
						}
					}
					e := start(b, spec, cs)
					var d engine.Decision
					q := engine.Query{}
					b.ReportAllocs()
					for b.Loop() {
						_ = e.Decide(&q, &d)
					}
				})
			}
		}
	}
}

func BenchmarkChangeGroups(b *testing.B) {
	for _, spec := range []string{"priority seed=7", "locality seed=7"} {
		for _, n := range []int{512, 10000} {
			cs := thirds(n)
			e := start(b, spec, cs)
			b.Run(spec+"/set/"+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					_ = e.SetCandidates(0, cs)
				}
			})
			b.Run(spec+"/status/"+strconv.Itoa(n), func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					_ = e.SetStatus(0, cs[7].ID, engine.Status(i%2))
				}
			})
		}
	}
}
