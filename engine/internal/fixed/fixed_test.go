package fixed_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine/internal/fixed"
)

// Frozen: a change of any of these numbers is a change of the compatibility contract.
func TestPublishedVectors(t *testing.T) {
	for x, want := range map[uint64]uint64{
		0:                    9223372036854775808,
		1:                    9223372036854775786,
		1048576:              9223372036831517649,
		562949953421312:      9210893855724318840,
		1125899906842624:     9198432556164277331,
		144115188075855872:   6521908912666391106,
		288230376151711743:   4611686018427384206,
		288230376151711744:   4611686018427387904,
		877036807356369799:   1119195148636525009,
		17870283321406128128: 2,
		18446744073709551615: 0,
	} {
		assert.Equal(t, want, fixed.Decay(x), "Decay(%d)", x)
	}
	for v, want := range map[uint64]uint64{
		1:                    0,
		2:                    4294967296,
		3:                    6807362105,
		10:                   14267572527,
		1000:                 42802717581,
		4294967295:           137438953470,
		18446744073709551615: 274877906943,
	} {
		assert.Equal(t, want, fixed.Log2(v), "Log2(%d)", v)
	}
	for in, want := range map[[3]uint64]uint64{
		{1, 5000, 10000}:            9223372036854775808,
		{2, 5000, 10000}:            6521908912666391106,
		{3, 10000, 10000}:           3074457345618258602,
		{7, 15000, 10000}:           498015278814504977,
		{1000, 100000, 10000}:       0,
		{4294967296, 100000, 10000}: 0,
	} {
		assert.Equal(t, want, fixed.InversePower(in[0], in[1], in[2]), "%v", in)
	}
	for in, want := range map[[4]uint64]uint64{
		{1, 2, 10000, 10000}:     4611686018427387904,
		{1, 3, 10000, 20000}:     5325116329166581597,
		{999, 1000, 10000, 5000}: 9204934516895050567,
		{5, 5, 1, 1}:             9223372036854775808,
	} {
		assert.Equal(t, want, fixed.FractionPower(in[0], in[1], in[2], in[3]), "%v", in)
	}
	assert.Equal(t, uint64(41582853), fixed.DecayRate(10_000_000_000))
}

// exp2 is 2^-(x/2^58) times 2^63 to a hundred bits or so, by the product of square roots.
func exp2(x uint64) *big.Float {
	v := new(big.Float).SetPrec(140).SetMantExp(big.NewFloat(1), 63-int(x>>58))
	root := new(big.Float).SetPrec(140).SetFloat64(0.5)
	for bit := 57; bit >= 0; bit-- {
		root.Sqrt(root)
		if x>>bit&1 == 1 {
			v.Mul(v, root)
		}
	}
	return v
}

func TestDecayIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64().Draw(t, "x") >> rapid.IntRange(0, 63).Draw(t, "small")
		want := exp2(x)
		off := new(big.Float).Sub(want, new(big.Float).SetPrec(140).SetUint64(fixed.Decay(x)))
		bound := new(big.Float).SetMantExp(want, -47)
		if bound.Cmp(big.NewFloat(1)) < 0 {
			bound.SetFloat64(1)
		}
		if off.Abs(off).Cmp(bound) > 0 {
			t.Fatalf("Decay(%d) is off by %v, allowed %v", x, off, bound)
		}
	})
}

func TestDecayFallsAsFarAsItsBoundTells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64Range(0, 8*fixed.Octave).Draw(t, "x")
		if rapid.Bool().Draw(t, "at a seam of the table") {
			x = max(x>>50<<50, 1) - 1
		}
		step := rapid.SampledFrom([]uint64{1, 2, 1 << 20, 1 << 50}).Draw(t, "step")
		if was, is := fixed.Decay(x), fixed.Decay(x+step); is > was+was>>46 {
			t.Fatalf("Decay(%d) = %d, and later %d", x, was, is)
		}
	})
	assert.Equal(t, fixed.One, fixed.Decay(0))
	assert.Equal(t, fixed.One/2, fixed.Decay(fixed.Octave))
}

// The wait between two decays does not matter: this is what lets a reading be pure.
func TestDecayOverTwoSpansIsDecayOverTheirSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64Range(0, 8*fixed.Octave).Draw(t, "a"), rapid.Uint64Range(0, 8*fixed.Octave).Draw(t, "b")
		both := float64(fixed.Decay(a)) / float64(fixed.One) * float64(fixed.Decay(b)) / float64(fixed.One)
		assert.InEpsilon(t, both, float64(fixed.Decay(a+b))/float64(fixed.One), 1e-11)
	})
}

func TestPowersAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(1, 1<<40).Draw(t, "v") >> rapid.IntRange(0, 39).Draw(t, "small")
		v = max(v, 1)
		log := float64(fixed.Log2(v)) / (1 << 32)
		assert.InDelta(t, math.Log2(float64(v)), log, 3.0/(1<<32))
		num := rapid.Uint64Range(0, 100000).Draw(t, "num")
		close := func(want float64, got uint64) {
			g := float64(got) / float64(fixed.One)
			assert.InDelta(t, want, g, want/(1<<24)+2/float64(fixed.One))
		}
		close(math.Pow(float64(v), -float64(num)/10000), fixed.InversePower(v, num, 10000))
		b := v + rapid.Uint64Range(0, 1<<40).Draw(t, "more")
		close(math.Pow(float64(v)/float64(b), float64(num)/10000), fixed.FractionPower(v, b, num, 10000))
	})
}

func BenchmarkDecay(b *testing.B) {
	var x, sum uint64
	for b.Loop() {
		x += 12345678901234
		sum += fixed.Decay(x)
	}
	_ = sum
}
