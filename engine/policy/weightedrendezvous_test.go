package policy_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/internal/rank"
)

// weightedOrder is the rule in floating point. Two times of a random field are never so close
// that rounding would matter.
func weightedOrder(cs []engine.Candidate, key engine.Key) []engine.ID {
	time := func(c engine.Candidate) float64 {
		score := rank.Score(rank.Key(uint64(key)), rank.Replica(uint64(c.ID)))
		return -math.Log1p(-float64(^score)/(1<<64)) / float64(max(1, c.Weight))
	}
	order := slices.Clone(cs)
	slices.SortFunc(order, func(a, b engine.Candidate) int { return cmp.Compare(time(a), time(b)) })
	return ids(order)
}

func weightedFleet(tb testing.TB, spec string, weights ...engine.Weight) *engine.Engine {
	tb.Helper()
	return start(tb, spec, numbered(weights))
}

// numbered are candidates with these weights and the IDs from 100 on.
func numbered(weights []engine.Weight) []engine.Candidate {
	cs := make([]engine.Candidate, len(weights))
	for i, w := range weights {
		cs[i] = engine.Candidate{ID: engine.ID(100 + i), Weight: w}
	}
	return cs
}

func TestAnAgedWeightedRendezvousAgreesWithTheRuleAndWithAFreshOne(t *testing.T) {
	agesWell(t, "weighted_rendezvous", func(open []engine.Candidate, key engine.Key) engine.ID { return weightedOrder(open, key)[0] })
}

func TestDecidingAgainWithTheWinnersTriedIsTheTopOfTheWeightedRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := hashFleet(t)
		key := engine.Key(rapid.Uint64Min(1).Draw(t, "key"))
		var tried []engine.ID
		for _, want := range weightedOrder(cs, key) {
			got := placed("weighted_rendezvous")(cs, key, tried...)
			require.Equal(t, want, got)
			tried = append(tried, got)
		}
	})
}

func TestEqualWeightsDecideAsRendezvous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := hashFleet(t)
		weight := rapid.OneOf(rapid.Uint32Range(0, 9), rapid.Uint32()).Draw(t, "weight")
		for i := range cs {
			cs[i].Weight = engine.Weight(weight)
		}
		for key := range engine.Key(50) {
			require.Equal(t, placed("rendezvous")(cs, key+1), placed("weighted_rendezvous")(cs, key+1))
		}
	})
}

func TestSharesOfKeysAreInProportionToWeights(t *testing.T) {
	for name, weights := range map[string][]engine.Weight{
		"small":          {1, 2, 3, 4, 1, 2, 3, 4},
		"far apart":      {1, 5, 25},
		"large":          {1<<32 - 1, 1 << 31, 1 << 30},
		"large and near": {4_000_000_000, 3_000_000_000, 2_999_999_999},
		"unset is one":   {0, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			total, least := 0.0, math.Inf(1)
			for _, w := range weights {
				total += float64(max(1, w))
				least = min(least, float64(max(1, w)))
			}
			n := enginetest.Draws(least/total, 0.07)
			e := weightedFleet(t, "weighted_rendezvous seed=5", weights...)
			for _, key := range keyings {
				counts := make([]int, len(weights))
				var d engine.Decision
				for i := range n {
					require.NoError(t, e.Decide(&engine.Query{Key: key(i)}, &d))
					counts[d.Index]++
				}
				for i, w := range weights {
					assert.NoError(t, enginetest.CheckShare(float64(max(1, w))/total, counts[i], n), i)
				}
			}
		})
	}
}

// The tempting rule without a logarithm, score times weight, gives too much to the heavy.
func TestTheTestOfSharesNoticesARaceWithoutALogarithm(t *testing.T) {
	n := enginetest.Draws(0.25, 0.05)
	count := 0
	for i := range n {
		score := func(id uint64) float64 { return float64(rank.Score(rank.Key(uint64(i+1)), rank.Replica(id))) }
		if score(1) > 3*score(2) {
			count++
		}
	}
	assert.Error(t, enginetest.CheckShare(0.25, count, n))
}

func TestWeightedRendezvousSaysWhy(t *testing.T) {
	e := weightedFleet(t, "weighted_rendezvous", 1, 2, 3)
	x := e.Explain(&engine.Query{Key: 77})
	assert.Equal(t, "has the least race time for this key of 3 open candidates", x.Because)
	assert.Zero(t, x.Ties)
	slices.SortFunc(x.Weighed, func(a, b engine.Weighed) int { return cmp.Compare(a.Load, b.Load) })
	assert.Equal(t, engine.VerdictChosen, x.Weighed[0].Verdict)
	assert.Equal(t, engine.VerdictRunnerUp, x.Weighed[1].Verdict)
}
