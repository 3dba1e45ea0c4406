package fixed_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine/internal/fixed"
)

// Frozen: a change of any of these numbers moves keys between replicas.
func TestPublishedNegLogVectors(t *testing.T) {
	for _, v := range []struct{ h, want uint64 }{
		{0x0, 0xb17217f7d1cf79ab},
		{0x1, 0xaeac4f97f2883bc5},
		{0x2, 0xad0d1d59268eb705},
		{0x100000000, 0x58b90bfbe4e7bcd1},
		{0x5692161d100b05e5, 0x4563ce0796f06ad},
		{0x7fffffffffffffff, 0x2c5c85fdf473de6},
		{0x8000000000000000, 0x2c5c85fdf473de1},
		{0xb4d055fcf2cbbd7b, 0x1640dfc9bc8de7a},
		{0xd2cc53a920c1beb4, 0xc6f0644618deed},
		{0xff00000000000000, 0x40201565622cc},
		{0xffffffff00000000, 0x3ffffff},
		{0xffffffffffffffbf, 0x1},
		{0xffffffffffffffc0, 0x0},
		{0xffffffffffffffff, 0x0},
	} {
		assert.Equal(t, v.want, fixed.NegLog(v.h), "%#x", v.h)
	}
}

const precision = 120

func exactly(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// trueNegLog is -ln((h+1) / 1<<64), by ln(m) = 2 atanh((m-1)/(m+1)) for m in (1/2, 1].
func trueNegLog(h uint64) *big.Float {
	m := new(big.Float).SetPrec(precision).SetUint64(h)
	m.Add(m, exactly(1)).SetMantExp(m, -64)
	octaves := 0
	for m.Cmp(exactly(0.5)) <= 0 {
		m.SetMantExp(m, 1)
		octaves++
	}
	sum := negLogNearOne(m)
	return sum.Add(sum, new(big.Float).Mul(exactly(float64(octaves)), negLogNearOne(exactly(0.5))))
}

func negLogNearOne(m *big.Float) *big.Float {
	z := new(big.Float).Quo(new(big.Float).Sub(exactly(1), m), new(big.Float).Add(exactly(1), m))
	square := new(big.Float).Mul(z, z)
	sum := exactly(0)
	for n := 1; n < 80; n += 2 {
		sum.Add(sum, new(big.Float).Quo(z, exactly(float64(n))))
		z.Mul(z, square)
	}
	return sum.Mul(sum, exactly(2))
}

// edges are the arguments at which a stretch of the table or an octave begins, and some at random.
func edges() (hs []uint64) {
	for octave := range uint64(64) {
		for i := range uint64(256) {
			d := i << 55 >> octave
			hs = append(hs, ^uint64(0)>>octave-d)
		}
	}
	for b := range 64 {
		hs = append(hs, uint64(1)<<b, ^(uint64(1) << b))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		hs = append(hs, r.Uint64(), ^(r.Uint64() >> r.IntN(64)), r.Uint64()>>r.IntN(64))
	}
	return hs
}

// The proof stands in docs/decisions/0017; this looks for a hole in it.
func TestNegLogIsShortOfTheTruthByLessThanItsBound(t *testing.T) {
	bound := math.Ldexp(1, -54)
	worst := 0.0
	for _, h := range edges() {
		got := new(big.Float).SetPrec(precision).SetUint64(fixed.NegLog(h))
		short, _ := new(big.Float).Sub(trueNegLog(h), got.SetMantExp(got, -58)).Float64()
		if short < 0 || short >= bound {
			require.Fail(t, "", "%#x is off by %g bounds", h, short/bound)
		}
		worst = max(worst, short)
	}
	assert.Greater(t, worst, bound/4, "a bound that nothing comes near proves little: %g", worst/bound)
}

func TestNegLogAgreesWithTheLibrarysLog2(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		h := r.Uint64() >> r.IntN(64) // the quotient is within one rounding of its true value
		want := -math.Log2((float64(h)+1)/(1<<64)) * math.Ln2
		if off := math.Abs(want - float64(fixed.NegLog(h))/(1<<58)); off > 1e-15*(1+want) {
			require.Fail(t, "", "%#x is off by %g", h, off)
		}
	}
}

func TestNegLogNeverGrowsAndIsNeverBelowItsArgument(t *testing.T) {
	check := func(t require.TestingT, h, more uint64) {
		if fixed.NegLog(more) > fixed.NegLog(h) || fixed.NegLog(h)>>26 < ^h>>32 {
			require.Fail(t, "", "%#x and %#x", h, more)
		}
	}
	for _, h := range edges() {
		for step := range uint64(20) {
			for _, x := range []uint64{h + step, h - step, h + 1<<step, h - 1<<step} {
				check(t, x, max(x, x+1))
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.Uint64().Draw(t, "h")
		check(t, h, rapid.Uint64Min(h).Draw(t, "more"))
	})
}

func BenchmarkNegLog(b *testing.B) {
	sum, h := uint64(0), uint64(1)
	for b.Loop() {
		h = h*6364136223846793005 + 1442695040888963407
		sum += fixed.NegLog(h)
	}
	_ = sum
}
