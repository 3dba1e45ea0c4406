package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// Every position owns exactly its weight times the number of columns, of all that can be drawn.
func TestAnAliasTableHoldsExactlyTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(0, 5), rapid.Uint32()), 1, 40).Draw(t, "weights")
		weights[rapid.IntRange(0, len(weights)-1).Draw(t, "live")] |= 1
		var a alias
		a.build(weights)
		area := make([]uint64, len(weights))
		for i, c := range a.columns {
			cut := min(c.cut, a.total)
			area[i] += cut
			area[c.other] += a.total - cut
		}
		for i, w := range weights {
			assert.Equal(t, uint64(w)*uint64(len(weights)), area[i], i)
		}
	})
}

// The slow twin draws one number below the whole area and divides it. The draws agree number by
// number, those included that are drawn again: with an area of 0.6 times 1<<64 that is two in five.
func TestAnAliasTableDrawsAsDivisionDoes(t *testing.T) {
	parts := func(weights []uint32, seed, other uint64) bool {
		fast, slow := NewWeightedRandom(seed), NewWeightedRandom(other)
		engine.New(fast, engine.Config{})
		engine.New(slow, engine.Config{})
		var a alias
		a.build(weights)
		for range 2000 {
			x := slow.Set.Draw64(a.area)
			want := uint32(x / a.total)
			if c := a.columns[want]; x%a.total >= c.cut {
				want = c.other
			}
			if a.draw(fast.Set) != want {
				return true
			}
		}
		return false
	}
	large := make([]uint32, 1<<16)
	for i := range large {
		large[i] = 2_576_980_000 + uint32(i%7)
	}
	require.False(t, parts(large, 1, 1))
	require.True(t, parts(large, 1, 2), "other numbers must be noticed")
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(0, 5), rapid.Uint32()), 1, 20).Draw(t, "weights")
		weights[0] |= 1
		seed := rapid.Uint64().Draw(t, "seed")
		require.False(t, parts(weights, seed, seed))
	})
}
