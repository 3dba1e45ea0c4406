package policy_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// start makes a machine of a spec and gives it a fleet at instant 0.
func start(tb testing.TB, spec string, cs []engine.Candidate) *engine.Engine {
	tb.Helper()
	p, err := policy.Parse(spec)
	require.NoError(tb, err)
	e := engine.New(p, engine.Config{})
	require.NoError(tb, e.SetCandidates(0, cs))
	return e
}

// machine is one over n replicas of equal weight.
func machine(tb testing.TB, spec string, n int) (*engine.Engine, []engine.Candidate) {
	tb.Helper()
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.IDOf("replica-" + strconv.Itoa(i))
	}
	return start(tb, spec, cs), cs
}

func BenchmarkDecide(b *testing.B) {
	for _, name := range append(policy.Names(), "prequal variant=keen") {
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
					if strings.HasPrefix(name, "prequal") || name == "linear" || name == "c3" {
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
