package policy_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A machine that takes over from another one decides as if it had made the open placements itself:
// naming the counts that stand changes nothing, and naming them mends counts that are wrong.
func TestOpenQueriesCanBeTakenOver(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			start := func() *engine.Engine {
				p, err := policy.Parse(name + " seed=7")
				require.NoError(t, err)
				e := engine.New(p, engine.Config{})
				require.NoError(t, e.SetCandidates(0, weighedDozen(12)))
				return e
			}
			first, second, third := start(), start(), start()
			r := rand.New(rand.NewPCG(1, 2))
			open := map[engine.ID]uint32{}
			playAlike(t, r, 0, open, first)
			counts := []engine.InFlight{{ID: 999, Queries: 5}} // who has left is passed over
			for id, n := range open {
				counts = append(counts, engine.InFlight{ID: id, Queries: n})
			}
			handOver := func(from, to *engine.Engine) {
				block, err := from.Snapshot(nil)
				require.NoError(t, err)
				require.NoError(t, to.Restore(block))
			}
			handOver(first, second)
			require.NoError(t, second.SetInFlight(counts))
			playAlike(t, r, 1e9, open, first, second)

			require.NoError(t, second.SetInFlight([]engine.InFlight{{ID: 3, Queries: 77}}))
			assert.EqualValues(t, 77, second.InFlight(3))
			counts = counts[:1]
			for id, n := range open {
				counts = append(counts, engine.InFlight{ID: id, Queries: n})
			}
			require.NoError(t, second.SetInFlight(counts))
			for id := engine.ID(1); id <= 12; id++ {
				assert.Equal(t, open[id], second.InFlight(id))
			}
			assert.Zero(t, second.InFlight(999))
			handOver(second, third) // what came of it is a state like any other
			playAlike(t, r, 2e9, open, second, third)
		})
	}
}

func weighedDozen(n int) []engine.Candidate {
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i + 1), Weight: engine.Weight(1 + i%3), Priority: uint8(i % 2), Locality: uint32(i % 2)}
	}
	return cs
}

// playAlike lets machines do the same from an instant on, and holds their decisions to be alike.
func playAlike(t *testing.T, r *rand.Rand, at engine.Instant, open map[engine.ID]uint32, ms ...*engine.Engine) {
	var placed []engine.ID
	for i := range 300 {
		now := at + engine.Instant(i)*1000
		switch r.IntN(4) {
		case 0, 1:
			q := engine.Query{Now: now, Key: engine.Key(r.Uint64())}
			var want engine.Decision
			for k, m := range ms {
				var d engine.Decision
				require.NoError(t, m.Decide(&q, &d))
				if k == 0 {
					want = d
				}
				require.Equal(t, want, d, "step %d", i)
			}
			placed = append(placed, want.ID)
			open[want.ID]++
		case 2:
			if len(placed) == 0 {
				continue
			}
			k, took := r.IntN(len(placed)), engine.Duration(r.IntN(1e6))
			for _, m := range ms {
				require.NoError(t, m.Report(now, engine.Report{ID: placed[k], Latency: took}))
			}
			open[placed[k]]--
			placed = append(placed[:k], placed[k+1:]...)
		case 3:
			id, rd := engine.ID(1+r.IntN(12)), engine.Reading{RIF: uint32(r.IntN(9)), Latency: engine.Duration(r.IntN(1e6)), Asked: now}
			for _, m := range ms {
				_, err := m.Record(now, id, rd)
				require.NoError(t, err)
			}
		}
	}
}
