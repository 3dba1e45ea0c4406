package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// tickets counts, over every ticket there is, those that stand for each slot.
func tickets(v *levels, n int, stand bool) []uint64 {
	counts := make([]uint64, n)
	for ticket := range v.bound {
		if slot, stands := v.at(ticket); stands || stand {
			counts[slot]++
		}
	}
	return counts
}

// walkLevels drives a policy with its row through joins, drains, queries and restores, and
// hands every state to look.
func walkLevels(t *rapid.T, p *LeastRequest, look func(s *engine.Set)) {
	e := engine.New(p, engine.Config{})
	n := rapid.IntRange(1, 12).Draw(t, "replicas")
	fleet := func() (cs []engine.Candidate) {
		for i := range n {
			if rapid.IntRange(0, 5).Draw(t, "there") > 0 {
				cs = append(cs, engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(rapid.IntRange(1, 9).Draw(t, "weight"))})
			}
		}
		return rapid.Permutation(cs).Draw(t, "order")
	}
	require.NoError(t, e.SetCandidates(0, fleet()))
	for now := range engine.Instant(60) {
		id := engine.ID(rapid.IntRange(0, n-1).Draw(t, "replica"))
		switch rapid.SampledFrom([]string{"decide", "decide", "decide", "report", "report", "status", "fleet", "restore"}).Draw(t, "op") {
		case "decide":
			var d engine.Decision
			_ = e.Decide(&engine.Query{Now: now}, &d)
		case "report":
			_ = e.Report(now, engine.Report{ID: id})
		case "status":
			_ = e.SetStatus(now, id, engine.Status(rapid.IntRange(0, 2).Draw(t, "status")))
		case "fleet":
			require.NoError(t, e.SetCandidates(now, fleet()))
		case "restore":
			block, err := e.Snapshot(nil)
			require.NoError(t, err)
			require.NoError(t, e.Restore(block))
		}
		look(p.Set)
	}
}

func leastRequest(t require.TestingT, bias uint64, slow engine.Duration) *LeastRequest {
	c := DefaultLeastRequest(7)
	c.Bias, c.SlowStart = bias, slow
	p, err := NewLeastRequest(c)
	require.NoError(t, err)
	return p
}

// The aged row says what the loads say, whatever happened before.
func TestARowFollowsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := leastRequest(t, rapid.SampledFrom([]uint64{0, 5000, 10000, 25000}).Draw(t, "bias"), engine.Duration(rapid.IntRange(0, 20).Draw(t, "slow")))
		walkLevels(t, p, func(s *engine.Set) {
			var fresh levels
			fresh.load = make([]uint64, s.Len())
			for _, slot := range s.EligibleSlots() {
				fresh.load[slot] = 1
				if p.follows() {
					fresh.load[slot] = p.load(slot, s.InFlight(slot))
				}
				require.Equal(t, fresh.load[slot], p.row.load[slot])
			}
			fresh.measure(s)
			require.Equal(t, fresh.begin, p.row.begin)
			require.Equal(t, fresh.bound, p.row.bound)
			require.True(t, fresh.rebuild(s), "the words are a row")
			require.Equal(t, append([]uint32{}, fresh.row...), append([]uint32{}, p.row.row...))
		})
	})
}

// Of all tickets exactly as many stand for a slot as its load, and at least half stand.
func TestTicketsStandInProportionToLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.Uint64Range(1, 70), 1, 12).Draw(t, "loads")
		cs := make([]engine.Candidate, len(loads))
		for i := range cs {
			cs[i].ID = engine.ID(i)
		}
		p := leastRequest(t, 0, 0)
		require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, cs))
		v := &p.row
		copy(v.load, loads)
		v.build(p.Set)
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			slot := rapid.IntRange(0, len(loads)-1).Draw(t, "slot")
			loads[slot] = rapid.Uint64Range(1, 70).Draw(t, "load")
			v.change(p.Set, uint32(slot), loads[slot])
		}
		assert.Equal(t, loads, tickets(v, len(loads), false))
		total := uint64(0)
		for _, l := range loads {
			total += l
		}
		assert.LessOrEqual(t, v.bound, 2*total)
	})
}

// The law above must be able to fail: letting every ticket stand is not in proportion.
func TestTicketsThatAllStandAreNoticed(t *testing.T) {
	p := leastRequest(t, 0, 0)
	require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, []engine.Candidate{{ID: 1}, {ID: 2, Weight: 3}}))
	p.row.load = []uint64{1, 3}
	p.row.build(p.Set)
	assert.Equal(t, []uint64{1, 3}, tickets(&p.row, 2, false))
	assert.NotEqual(t, []uint64{1, 3}, tickets(&p.row, 2, true))
}

// Whatever the weights and however many queries are in flight, nobody's share is nothing, and
// all shares together fit.
func TestNoReplicaIsStarved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "replicas")
		cs := make([]engine.Candidate, n)
		for i := range cs {
			cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(rapid.Uint32Range(1, 1<<32-1).Draw(t, "weight"))}
		}
		p := leastRequest(t, rapid.Uint64Range(0, 100000).Draw(t, "bias"), 0)
		require.NoError(t, engine.New(p, engine.Config{}).SetCandidates(0, cs))
		for slot := range uint32(n) {
			was := ^uint64(0)
			for _, inFlight := range []uint32{0, 1, 2, 1000, 1023, 1024, 5000, 1<<32 - 1} {
				load := p.load(slot, inFlight)
				require.GreaterOrEqual(t, load, uint64(1))
				require.LessOrEqual(t, load, was, "a share never grows with queries in flight")
				was = load
			}
		}
		require.Less(t, p.row.bound, uint64(1)<<63)
	})
}
