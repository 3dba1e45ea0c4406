package policy_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func indices(tb testing.TB, e *engine.Engine, n int, tried ...engine.ID) (out []int) {
	tb.Helper()
	var d engine.Decision
	for range n {
		require.NoError(tb, e.Decide(&engine.Query{Tried: tried}, &d))
		out = append(out, int(d.Index))
	}
	return out
}

func TestSmoothRotationKeepsPublishedOrders(t *testing.T) {
	const spec = "smooth_weighted_round_robin start=zero"
	abc, _ := fleetOf(t, spec, 5, 1, 1)
	assert.Equal(t, []int{0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0}, indices(t, abc, 14), "a a b a c a a, twice")
	equal, _ := fleetOf(t, spec, 0, 1, 1)
	assert.Equal(t, []int{0, 1, 2, 0, 1, 2}, indices(t, equal, 6), "equal weights are a plain rotation")
	eight, _ := oneToFour(t, spec, 8)
	assert.Equal(t, []int{3, 7, 2, 6, 1, 5, 3, 7, 0, 2, 6, 4, 3, 7, 1, 5, 2, 6, 3, 7, 3, 7, 2, 6}, indices(t, eight, 24), "weights 1 to 4, twice")
}

// roundsAreExact plays rounds, each as long as the weights together, and wants each candidate in
// each round as often as its weight says, give or take slack.
func roundsAreExact(weights []engine.Weight, rounds, slack int, next func() int) error {
	total := 0
	for _, w := range weights {
		total += int(max(1, w))
	}
	for round := range rounds {
		counts := make([]int, len(weights))
		for range total {
			counts[next()]++
		}
		for i, w := range weights {
			if off := counts[i] - int(max(1, w)); off > slack || off < -slack {
				return fmt.Errorf("round %d gave candidate %d of weight %d %d turns", round, i, w, counts[i])
			}
		}
	}
	return nil
}

func TestEveryRoundOfASmoothRotationIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var weights []engine.Weight
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			weights = append(weights, engine.Weight(rapid.OneOf(rapid.IntRange(0, 4), rapid.IntRange(1, 60)).Draw(t, "weight")))
		}
		var d engine.Decision
		for start, slack := range map[string]int{"zero": 0, "random": 1} {
			p, err := policy.NewSmoothWeightedRoundRobin(rapid.Uint64().Draw(t, "seed"), start)
			require.NoError(t, err)
			e := engine.New(p, engine.Config{})
			cs := make([]engine.Candidate, len(weights))
			for i, w := range weights {
				cs[i] = engine.Candidate{ID: engine.ID(i), Weight: w}
			}
			require.NoError(t, e.SetCandidates(0, cs))
			next := func() int { _ = e.Decide(&engine.Query{}, &d); return int(d.Index) }
			if slack > 0 { // a drawn start is not part of a rotation at once
				for range 60 * 12 {
					next()
				}
			}
			require.NoError(t, roundsAreExact(weights, 4, slack, next), start)
		}
	})
	random, _ := fleetOf(t, "weighted_random seed=1", 5, 1, 2)
	assert.Error(t, roundsAreExact([]engine.Weight{5, 1, 2}, 10, 1, func() int { return indices(t, random, 1)[0] }), "draws are not exact, and the law must notice")
}

// Clients that start apart ask different replicas first, each with the chance of its weight.
func TestSmoothRotationsStartApart(t *testing.T) {
	n := enginetest.Draws(0.1, 0.1)
	first := func(start string) (counts [10]int) {
		for seed := range n {
			p, err := policy.NewSmoothWeightedRoundRobin(uint64(seed)*7919, start)
			require.NoError(t, err)
			e := engine.New(p, engine.Config{})
			cs := make([]engine.Candidate, 10)
			for i := range cs {
				cs[i] = engine.Candidate{ID: engine.ID(i), Weight: 1000}
			}
			require.NoError(t, e.SetCandidates(0, cs))
			counts[indices(t, e, 1)[0]]++
		}
		return counts
	}
	for i, c := range first("random") {
		require.NoError(t, enginetest.CheckShare(0.1, c, n), i)
	}
	assert.Equal(t, n, first("zero")[0], "without a start of their own all begin with the same one")
}

func TestAFlapCostsNoTurn(t *testing.T) {
	const spec = "smooth_weighted_round_robin start=zero"
	e, cs := fleetOf(t, spec, 2, 3, 3, 2)
	still, _ := fleetOf(t, spec, 2, 3, 3, 2)
	for range 40 {
		require.Equal(t, indices(t, still, 1), indices(t, e, 1))
		require.NoError(t, e.SetStatus(0, cs[3].ID, engine.StatusDraining))
		require.NoError(t, e.SetStatus(0, cs[3].ID, engine.StatusReady))
	}
}

func TestADrainedReplicaKeepsItsCreditAndOneThatLeftDoesNot(t *testing.T) {
	const spec = "smooth_weighted_round_robin start=zero"
	e, cs := fleetOf(t, spec, 1, 1, 1)
	require.Equal(t, []int{0}, indices(t, e, 1))
	require.NoError(t, e.SetStatus(0, cs[0].ID, engine.StatusDraining))
	require.Equal(t, []int{1, 2}, indices(t, e, 2))
	require.NoError(t, e.SetStatus(0, cs[0].ID, engine.StatusReady))
	assert.Equal(t, []int{1, 2, 0}, indices(t, e, 3), "it had its turn before it was drained")

	e, cs = fleetOf(t, spec, 1, 1, 1)
	require.Equal(t, []int{0}, indices(t, e, 1))
	require.NoError(t, e.SetCandidates(0, cs[1:]))
	require.Equal(t, []int{0, 1}, indices(t, e, 2))
	require.NoError(t, e.SetCandidates(0, cs))
	assert.Equal(t, []int{0, 1, 2}, indices(t, e, 3), "it comes back as a newcomer, level with the others")
}

// A fleet of thousands that shrinks to a few leaves credits of the old size behind. Uncut, they
// would buy hundreds of turns in a row.
func TestAShrunkenFleetGivesNobodyARunOfTurns(t *testing.T) {
	for seed := range 20 {
		e, cs := oneToFour(t, fmt.Sprint("smooth_weighted_round_robin seed=", seed), 2000)
		indices(t, e, 777)
		few := []engine.Candidate{cs[0], cs[4], cs[8], cs[12]} // weight 1 each
		require.NoError(t, e.SetCandidates(0, few))
		last, run := -1, 0
		for _, i := range indices(t, e, 200) {
			if run++; i != last {
				last, run = i, 1
			}
			require.LessOrEqual(t, run, 3)
		}
	}
}

func TestARetryNeitherPaysNorOwesTheAvoided(t *testing.T) {
	e, cs := fleetOf(t, "smooth_weighted_round_robin start=zero", 5, 1, 1)
	require.Equal(t, []int{0, 0}, indices(t, e, 2))
	for _, i := range indices(t, e, 100, cs[0].ID) {
		require.NotZero(t, i)
	}
	assert.Equal(t, []int{1, 0, 2, 0, 0}, indices(t, e, 5), "and the rotation of three goes on where it was")
}

// D5: no allocation per decision, whatever the identities and the size.
func TestASmoothRotationAllocatesNothing(t *testing.T) {
	for _, n := range []int{8, 64, 512} {
		e, cs := oneToFour(t, "smooth_weighted_round_robin seed=7", n)
		var d engine.Decision
		q, retry := engine.Query{}, engine.Query{Tried: []engine.ID{cs[1].ID, cs[n/2].ID}}
		assert.Zero(t, testing.AllocsPerRun(2000, func() {
			_ = e.Decide(&q, &d)
			_ = e.Decide(&retry, &d)
		}), n)
	}
}

func TestASmoothRotationRefusesWeightsThatDoNotFit(t *testing.T) {
	p, err := policy.NewSmoothWeightedRoundRobin(1, "zero")
	require.NoError(t, err)
	e := engine.New(p, engine.Config{MaxCandidates: 1 << 17})
	cs := make([]engine.Candidate, 1<<16, 1<<16+1)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: 1<<32 - 1}
	}
	require.NoError(t, e.SetCandidates(0, cs), "the largest weights of the largest ordinary fleet")
	err = e.SetCandidates(0, append(cs, engine.Candidate{ID: 1 << 20, Weight: 1<<32 - 1}))
	require.ErrorIs(t, err, engine.ErrOverflow)
	assert.EqualError(t, err, "overflow: weights of 281479271612415 in all, at most 281474976710656")
	assert.Equal(t, []int{0, 1, 2}, indices(t, e, 3), "the old fleet stays")
}

func TestASmoothRotationRefusesStatesItCouldNotHaveMade(t *testing.T) {
	e, cs := fleetOf(t, "smooth_weighted_round_robin start=zero", 5, 1, 1)
	require.NoError(t, e.SetStatus(0, cs[2].ID, engine.StatusDraining))
	indices(t, e, 10)
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	const first = 8 + 1 // head and rounds come before the slots, of three words each
	for name, change := range map[string]func(b []uint64){
		"a credit out of reach":        func(b []uint64) { b[first+1] += 1 << 40 },
		"a debt out of reach":          func(b []uint64) { b[first+1] -= 1 << 40 },
		"rounds that nobody played":    func(b []uint64) { b[first-1] += 1 << 40 },
		"another weight":               func(b []uint64) { b[first+2]++ },
		"an eligible one never seen":   func(b []uint64) { b[first+1], b[first+2] = 0, 5 },
		"a drained one that gains":     func(b []uint64) { b[first+6+2]++ },
		"a stranger that holds credit": func(b []uint64) { b[first+6+1], b[first+6+2] = 1, 0 },
	} {
		words := make([]uint64, len(block)/8)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(block[8*i:])
		}
		change(words)
		var changed []byte
		for _, w := range words {
			changed = binary.LittleEndian.AppendUint64(changed, w)
		}
		assert.ErrorIs(t, e.Restore(changed), engine.ErrBlock, name)
	}
	assert.NoError(t, e.Restore(block))
	servesOrRefuses(t, "smooth_weighted_round_robin seed=7")
	theTablesFollowTheFleet(t, "smooth_weighted_round_robin seed=7")
}

func TestASmoothRotationSaysWhoIsAhead(t *testing.T) {
	e, cs := fleetOf(t, "smooth_weighted_round_robin start=zero", 3, 3, 1)
	x := e.Explain(&engine.Query{})
	assert.Equal(t, "has the most credit (3) of 3 open candidates and pays 7", x.Because)
	assert.Equal(t, 1, x.Ties)
	assert.Equal(t, cs[1].ID, x.RunnerUp)
	loads := map[engine.ID]uint64{}
	for _, w := range x.Weighed {
		loads[w.ID] = w.Load
	}
	assert.Equal(t, map[engine.ID]uint64{cs[0].ID: 0, cs[1].ID: 0, cs[2].ID: 2}, loads)
}

// A retry may avoid whom it likes. One that always avoids the replicas ahead, or all but a few
// in turn, must not lead to credits that a restore then refuses.
func TestNoPatternOfRetriesLeadsOutOfReach(t *testing.T) {
	for _, n := range []int{3, 12, 33} {
		p, err := policy.NewSmoothWeightedRoundRobin(uint64(n), "random")
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		cs := make([]engine.Candidate, n)
		for i := range cs {
			cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(1 + i*i*i)}
		}
		require.NoError(t, e.SetCandidates(0, cs))
		var recent []engine.ID
		for i := range 30000 {
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Tried: recent}, &d))
			switch recent = append(recent, d.ID); {
			case i/500%2 == 0 && len(recent) > 2: // those that just won
				recent = recent[1:]
			case len(recent) == n:
				recent = recent[:i%2]
			}
			if i%100 == 0 {
				block, err := e.Snapshot(nil)
				require.NoError(t, err)
				require.NoError(t, e.Restore(block), "decision %d", i)
			}
		}
	}
}

// A policy keeps no order of a machine it served before.
func TestSmoothRotationServesASecondMachineAfresh(t *testing.T) {
	p, err := policy.NewSmoothWeightedRoundRobin(7, "zero")
	require.NoError(t, err)
	var orders [2][]int
	for i := range orders {
		e := engine.New(p, engine.Config{})
		require.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 1, Weight: 2}, {ID: 2, Weight: 1}, {ID: 3, Weight: 2}}))
		orders[i] = indices(t, e, 7)
	}
	assert.Equal(t, orders[0], orders[1])
}
