package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

// fleetOf makes candidates with these weights, named a, b, c and so on.
func fleetOf(tb testing.TB, spec string, weights ...engine.Weight) (*engine.Engine, []engine.Candidate) {
	tb.Helper()
	cs := make([]engine.Candidate, len(weights))
	for i, w := range weights {
		cs[i] = engine.Candidate{ID: engine.IDOf(string(rune('a' + i))), Weight: w}
	}
	return start(tb, spec, cs), cs
}

// sharesFollow draws often enough to notice a share that is 3 % off, and checks every one.
func sharesFollow(weights []engine.Weight, tried []bool, draw func() int) error {
	total, least := engine.Weight(0), engine.Weight(0)
	for i, w := range weights {
		if w = max(1, w); !tried[i] {
			total += w
			if least == 0 || w < least {
				least = w
			}
		}
	}
	n := enginetest.Draws(min(0.9, float64(least)/float64(total)), 0.03)
	counts := make([]int, len(weights))
	for range n {
		counts[draw()]++
	}
	for i, w := range weights {
		share := float64(max(1, w)) / float64(total)
		if tried[i] {
			share = 0
		}
		if err := enginetest.CheckShare(share, counts[i], n); err != nil {
			return fmt.Errorf("candidate %d: %w", i, err)
		}
	}
	return nil
}

func TestWeightedRandomGivesEachOpenCandidateItsShare(t *testing.T) {
	for name, c := range map[string]struct {
		weights []engine.Weight
		tried   []bool
	}{
		"nothing tried":            {[]engine.Weight{5, 1, 2, 8}, []bool{false, false, false, false}},
		"unset weights are one":    {[]engine.Weight{0, 1, 0, 3}, []bool{false, false, false, false}},
		"a light one tried":        {[]engine.Weight{5, 1, 2, 8}, []bool{false, true, false, false}},
		"nearly all weight tried":  {[]engine.Weight{1, 3000000000, 2, 3}, []bool{false, true, false, false}},
		"all but one tried":        {[]engine.Weight{1, 2, 3, 4}, []bool{true, true, false, true}},
		"half of the weight tried": {[]engine.Weight{4, 3, 2, 1}, []bool{true, false, false, true}},
	} {
		e, cs := fleetOf(t, "weighted_random seed=11", c.weights...)
		q := engine.Query{}
		for i, tried := range c.tried {
			if tried {
				q.Tried = append(q.Tried, cs[i].ID)
			}
		}
		var d engine.Decision
		require.NoError(t, sharesFollow(c.weights, c.tried, func() int {
			require.NoError(t, e.Decide(&q, &d))
			return int(d.Index)
		}), name)
	}
}

// The law of shares must be able to fail: for uniform draws, and for retries that take the first
// open candidate when drawing again did not help.
func TestTheLawOfSharesNoticesPlantedFaults(t *testing.T) {
	weights := []engine.Weight{5, 4, 5, 5}
	none := []bool{false, false, false, false}
	uniform, _ := fleetOf(t, "random seed=1", weights...)
	var d engine.Decision
	assert.Error(t, sharesFollow(weights, none, func() int {
		_ = uniform.Decide(&engine.Query{}, &d)
		return int(d.Index)
	}))
	heavy := []engine.Weight{1, 40, 2, 3}
	e, _ := fleetOf(t, "weighted_random seed=1", heavy...)
	assert.Error(t, sharesFollow(heavy, []bool{false, true, false, false}, func() int {
		for range 8 {
			if _ = e.Decide(&engine.Query{}, &d); d.Index != 1 {
				return int(d.Index)
			}
		}
		return 0
	}))
}

// The slow twin walks the open weights as they are. Whatever the churn, the policy never
// chooses what the twin gives no chance, and chooses all that it gives one.
func TestWeightedRandomChoosesWhatItsTwinGivesAChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := policy.Parse("weighted_random seed=3")
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		for range 4 {
			n := rapid.IntRange(1, 6).Draw(t, "n")
			cs := make([]engine.Candidate, n)
			for i := range cs {
				cs[i] = engine.Candidate{ID: engine.ID(i), Weight: engine.Weight(rapid.IntRange(0, 3).Draw(t, "weight")), Status: engine.Status(rapid.IntRange(0, 2).Draw(t, "status"))}
			}
			require.NoError(t, e.SetCandidates(0, cs))
			q := engine.Query{}
			if rapid.Bool().Draw(t, "retry") {
				q.Tried = []engine.ID{cs[rapid.IntRange(0, n-1).Draw(t, "tried")].ID}
			}
			var twin []uint32
			for i, c := range cs {
				if c.Status.Eligible() && !slices.Contains(q.Tried, c.ID) {
					twin = append(twin, uint32(i))
				}
			}
			seen := map[uint32]bool{}
			for range 600 { // the least chance is 1/16: all but 10^-16 of runs see it
				var d engine.Decision
				if err := e.Decide(&q, &d); err != nil {
					require.Empty(t, twin)
					break
				}
				require.Contains(t, twin, d.Index)
				seen[d.Index] = true
			}
			require.Len(t, seen, len(twin))
		}
	})
}

// D1: a status that flips between any two calls never upsets a draw.
func TestAFlippedStatusNeverUpsetsAWeightedDraw(t *testing.T) {
	e, cs := fleetOf(t, "weighted_random seed=5", 1, 2, 3, 4, 5)
	var d engine.Decision
	for i := range 30000 {
		c := cs[i%5]
		require.NoError(t, e.SetStatus(0, c.ID, engine.Status(i/5%3)))
		if err := e.Decide(&engine.Query{}, &d); err != nil {
			require.ErrorIs(t, err, engine.ErrNoneEligible)
		}
	}
}

func TestAWeightedDrawRefusesAFleetWhoseTableWouldNotFit(t *testing.T) {
	p := policy.NewWeightedRandom(1)
	e := engine.New(p, engine.Config{MaxCandidates: 1 << 17})
	cs := make([]engine.Candidate, 1<<16, 1<<16+1)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: 1<<32 - 1}
	}
	require.NoError(t, e.SetCandidates(0, cs), "the largest weights of the largest ordinary fleet")
	low, n := 0, enginetest.Draws(0.5, 0.02)
	var d engine.Decision
	for range n { // here most draws come near the edge where some are drawn again
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		if d.Index < 1<<15 {
			low++
		}
	}
	require.NoError(t, enginetest.CheckShare(0.5, low, n))

	err := e.SetCandidates(0, append(cs, engine.Candidate{ID: 1 << 20, Weight: 1<<32 - 1}))
	require.ErrorIs(t, err, engine.ErrOverflow)
	assert.EqualError(t, err, "overflow: weights of 281479271612415 in all, times 65537 candidates, pass 64 bits")
	require.NoError(t, e.Decide(&engine.Query{}, &d), "the old fleet stays")
}

func TestAWeightedDrawSaysItsShare(t *testing.T) {
	e, cs := fleetOf(t, "weighted_random seed=2", 5, 1, 2)
	x := e.Explain(&engine.Query{Tried: []engine.ID{cs[1].ID}})
	require.NoError(t, x.Err)
	w, share := "5", "71.43 %"
	if x.Decision.Index == 2 {
		w, share = "2", "28.57 %"
	}
	assert.Equal(t, "was drawn with weight "+w+" of the 7 of 2 open candidates", x.Because)
	assert.Equal(t, []string{"its share is " + share}, x.Notes)
}

func TestAWeightedDrawsTablesFollowTheFleet(t *testing.T) {
	theTablesFollowTheFleet(t, "weighted_random seed=7")
	servesOrRefuses(t, "weighted_random seed=7")
}
