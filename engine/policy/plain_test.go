package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// shares counts decisions by candidate.
func shares(t *testing.T, e *engine.Engine, queries, n int, done bool) []int {
	t.Helper()
	counts := make([]int, n)
	var d engine.Decision
	for i := range queries {
		require.NoError(t, e.Decide(&engine.Query{Now: engine.Instant(i)}, &d))
		counts[d.Index]++
		if done {
			require.NoError(t, e.Report(engine.Instant(i), engine.Report{ID: d.ID}))
		}
	}
	return counts
}

// even checks a uniform law by chi-square; the bound is the 99.99 % quantile.
func even(t *testing.T, counts []int, bound float64) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	assert.Less(t, chi, bound, "%v", counts)
}

func TestRandomIsUniform(t *testing.T) {
	for seed := range 5 {
		e, _ := machine(t, "random seed="+string(rune('1'+seed)), 10)
		even(t, shares(t, e, 100000, 10, true), 33.7) // 9 degrees of freedom
	}
}

func TestRandomIsUniformAmongTheNotTried(t *testing.T) {
	e, cs := machine(t, "random seed=1", 6)
	tried := []engine.ID{cs[1].ID, cs[4].ID, cs[4].ID, 12345}
	counts := make([]int, 6)
	var d engine.Decision
	for i := range 40000 {
		require.NoError(t, e.Decide(&engine.Query{Now: engine.Instant(i), Tried: tried}, &d))
		counts[d.Index]++
	}
	assert.Zero(t, counts[1]+counts[4])
	even(t, []int{counts[0], counts[2], counts[3], counts[5]}, 21.1) // 3 degrees of freedom
}

func TestFallbackIsUniform(t *testing.T) {
	e, _ := machine(t, "prequal seed=4", 10)
	even(t, shares(t, e, 100000, 10, true), 33.7)
}

func TestPowerOfTwoDrawsEveryPairAlike(t *testing.T) {
	e, cs := machine(t, "power_of_two seed=1", 5)
	var d engine.Decision
	for range 3 { // load the last: it loses every pair
		for d.Index = 99; d.Index != 4; {
			require.NoError(t, e.Decide(&engine.Query{}, &d))
			if d.Index != 4 {
				require.NoError(t, e.Report(0, engine.Report{ID: d.ID}))
			}
		}
		if e.InFlight(cs[4].ID) > 0 {
			break
		}
	}
	counts := shares(t, e, 100000, 5, true)
	assert.Zero(t, counts[4], "of two distinct candidates the idle one wins")
	even(t, counts[:4], 21.1)
}

func TestRoundRobinCoversAllInTurnAndKeepsItsPlace(t *testing.T) {
	e, cs := machine(t, "round_robin", 7)
	for i, c := range shares(t, e, 7*100, 7, false) {
		assert.Equal(t, 100, c, i)
	}
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	next := cs[(d.Index+1)%7].ID
	turned := append(append([]engine.Candidate{}, cs[4:]...), cs[:4]...)
	require.NoError(t, e.SetCandidates(0, turned))
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	assert.Equal(t, next, d.ID, "after a reordering the turn goes on after the replica that served last")
}

func TestSeededRotationsStartApart(t *testing.T) {
	starts := map[uint32]bool{}
	for seed := range 20 {
		e, _ := machine(t, "round_robin seed="+string(rune('a'+seed)-'a'+'1'), 100)
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		starts[d.Index] = true
		if seed == 8 {
			break
		}
	}
	assert.Greater(t, len(starts), 5)
}

func TestLeastLoadedIsNeverMoreThanOneApart(t *testing.T) {
	e, _ := machine(t, "least_loaded seed=9", 9)
	counts := shares(t, e, 9*50+4, 9, false)
	for _, c := range counts {
		assert.True(t, c == 50 || c == 51, "%v", counts)
	}
}

func TestRoundRobinSkipsNobodyWhenTheLastOneLeaves(t *testing.T) {
	e, cs := machine(t, "round_robin", 5)
	var d engine.Decision
	for d.Index = 99; d.Index != 1; {
		require.NoError(t, e.Decide(&engine.Query{}, &d))
	}
	require.NoError(t, e.SetCandidates(0, append(append([]engine.Candidate{}, cs[0]), cs[2:]...)))
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	assert.Equal(t, cs[2].ID, d.ID)
}

// Config may allow more candidates than MaxCandidates; positions beyond it are weighed as well.
func TestLeastLoadedFindsTheIdleOneOfAVeryLargeFleet(t *testing.T) {
	const n, idle = 1<<17 + 5, 1<<17 + 2
	e := engine.New(policy.NewLeastLoaded(1), engine.Config{MaxCandidates: n})
	cs := make([]engine.Candidate, n)
	for i := range cs {
		cs[i].ID = engine.ID(i)
	}
	require.NoError(t, e.SetCandidates(1, cs))
	block := e.Block()
	loads, turn := block[len(block)-n:], block[:len(block)-n]
	turn[len(turn)-1], turn[len(turn)-2] = 1, 0 // started, at the first
	for i := range loads {
		if i != idle {
			loads[i] = 1
		}
	}
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Now: 1}, &d))
	assert.Equal(t, uint32(idle), d.Index)
	snapshot, err := e.Snapshot(nil)
	require.NoError(t, err)
	assert.NoError(t, e.Restore(snapshot), "a turn far out")
}
