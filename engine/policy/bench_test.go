package policy_test

import (
	"strconv"
	"testing"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

func machine(tb testing.TB, spec string, n int) (*engine.Engine, []engine.Candidate) {
	p, err := policy.Parse(spec)
	if err != nil {
		tb.Fatal(err)
	}
	e := engine.New(p, engine.Config{})
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.IDOf("replica-" + strconv.Itoa(i))
	}
	if err := e.SetCandidates(0, cs); err != nil {
		tb.Fatal(err)
	}
	return e, cs
}

func BenchmarkDecide(b *testing.B) {
	for _, name := range policy.Names() {
		for _, n := range []int{8, 64, 512, 4096} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				e, cs := machine(b, name+" seed=7", n)
				now := engine.Instant(0)
				var d engine.Decision
				q := engine.Query{}
				b.ReportAllocs()
				i := uint64(0)
				for b.Loop() {
					now += 1000
					if name == "prequal" || name == "linear" || name == "c3" {
						for range 2 {
							i = i*6364136223846793005 + 1442695040888963407
							_, _ = e.Record(now, cs[i>>33%uint64(n)].ID, engine.Reading{RIF: uint32(i >> 60), Latency: engine.Duration(i>>40 + 1000000), Asked: now})
						}
					}
					q.Now = now
					if err := e.Decide(&q, &d); err != nil {
						b.Fatal(err)
					}
					_ = e.Report(now, engine.Report{ID: d.ID})
				}
			})
		}
	}
}
