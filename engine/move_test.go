package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// Words and counts go where their replica goes, through any changes of the set, and no further.
func TestEveryWordFollowsItsReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &stub{layout: engine.Layout{Fixed: 1, PerSlot: rapid.IntRange(0, 3).Draw(t, "words")}}
		e := engine.New(p, engine.Config{})
		held := map[engine.ID][]uint64{}
		open := map[engine.ID]uint32{}
		next := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			order := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 12), 1, 12, rapid.ID).Draw(t, "fleet")
			if rapid.Bool().Draw(t, "few") { // one long run, but for a gap
				order = order[:0]
				gap := rapid.Uint64Range(0, 12).Draw(t, "gap")
				for id := range uint64(12) {
					if id != gap {
						order = append(order, id)
					}
				}
			}
			var cs []engine.Candidate
			stays, counts := map[engine.ID][]uint64{}, map[engine.ID]uint32{}
			for _, id := range order {
				cs = append(cs, engine.Candidate{ID: engine.ID(id)})
				stays[engine.ID(id)], counts[engine.ID(id)] = held[engine.ID(id)], open[engine.ID(id)]
			}
			held, open = stays, counts
			require.NoError(t, e.SetCandidates(0, cs))
			for slot, c := range cs {
				want := held[c.ID]
				if want == nil {
					want = make([]uint64, p.layout.PerSlot)
				}
				words := p.Set.Words(uint32(slot))
				assert.Equal(t, want, append([]uint64{}, words...), "of %d", c.ID)
				assert.Equal(t, open[c.ID], e.InFlight(c.ID), "of %d", c.ID)
				for i := range words {
					next++
					words[i] = next
				}
				held[c.ID] = append([]uint64{}, words...)
			}
			chosen := rapid.IntRange(0, len(cs)-1).Draw(t, "chosen")
			p.choose = func(*engine.Set) uint32 { return uint32(chosen) }
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{}, &d))
			open[d.ID]++
		}
	})
}
