package health

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// TestRampIsMonotone climbs from the floor to all, never down, and in no more than its steps. Found when it climbed
// between them.
func TestRampIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := Config{SlowStart: &SlowStart{
			Window:     time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(time.Hour)).Draw(t, "window")),
			Floor:      rapid.IntRange(1, 100).Draw(t, "floor"),
			Aggression: rapid.IntRange(1, 4).Draw(t, "aggression"),
		}}.filled()
		require.NoError(t, err)
		s := c.SlowStart
		began := engine.Instant(rapid.Int64Range(0, 1<<50).Draw(t, "began"))
		at, was, changes := began, s.share(began, began), 0
		require.EqualValues(t, s.Floor*100, was)
		for was < Full {
			next := s.next(at)
			require.Greater(t, next, at)
			require.Equal(t, was, s.share(began, next-1), "it changes at the instants that next names")
			share := s.share(began, next)
			require.GreaterOrEqual(t, share, was)
			at, was = next, share
			changes++
		}
		require.LessOrEqual(t, changes, steps+1+1)
		require.LessOrEqual(t, int64(at-began), int64(s.Window)+2*int64(s.grid()))
	})
}

// TestRoot compares with its definition in numbers without bounds.
func TestRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, degree := rapid.Uint64Range(0, Full).Draw(t, "x"), rapid.IntRange(1, 4).Draw(t, "degree")
		pow := func(base, n uint64) *big.Int {
			return new(big.Int).Exp(new(big.Int).SetUint64(base), new(big.Int).SetUint64(n), nil)
		}
		target := new(big.Int).Mul(new(big.Int).SetUint64(x), pow(Full, uint64(degree-1)))
		r := root(x, degree)
		require.LessOrEqual(t, pow(r, uint64(degree)).Cmp(target), 0)
		require.Positive(t, pow(r+1, uint64(degree)).Cmp(target))
	})
	require.EqualValues(t, 5000, root(2500, 2))
	require.EqualValues(t, Full, root(Full, 4))
}

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		share      uint32
		base, want uint32
	}{
		{0, 0, 0}, {0, 7, 7}, {Full, 0, 100}, {Full, 1, 100}, {Full, 3, 300}, {1000, 1, 10}, {1, 1, 1}, {5000, 7, 350},
		{Full, 42_949_672, 4_294_967_200}, {Full, 1<<32 - 1, 4_294_967_200},
	} {
		require.Equal(t, c.want, Verdict{Share: c.share}.Weight(c.base), "%+v", c)
	}
}
