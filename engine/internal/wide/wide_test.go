package wide

import (
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func number(x []uint64) *big.Int {
	n := new(big.Int)
	for _, w := range slices.Backward(x) {
		n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(w))
	}
	return n
}

// word favours the ends of the range, where carries are.
func word() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3), rapid.Uint64Range(1<<64-3, 1<<64-1))
}

func TestItAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "words")
		x := append(rapid.SliceOfN(word(), n, n).Draw(t, "x"), 0)
		y := append(rapid.SliceOfN(word(), n, n).Draw(t, "y"), 0)
		w := word().Draw(t, "w")
		a, b := number(x), number(y)
		check := func(what string, want *big.Int, op func(z []uint64)) {
			z := slices.Clone(x)
			op(z)
			assert.Zero(t, want.Cmp(number(z)), what)
		}
		bw := new(big.Int).SetUint64(w)
		check("product", new(big.Int).Mul(a, bw), func(z []uint64) { Mul(z, w) })
		check("sum", new(big.Int).Add(a, b), func(z []uint64) { Add(z, y) })
		if w != 0 {
			check("quotient", new(big.Int).Div(a, bw), func(z []uint64) { Div(z, w) })
		}
		assert.Equal(t, a.Cmp(b) < 0, Less(x, y))
		assert.Equal(t, a.BitLen(), Len(x))
		if a.Cmp(b) < 0 {
			q, r := new(big.Int).QuoRem(new(big.Int).Lsh(a, 32), b, new(big.Int))
			z := slices.Clone(x)
			assert.Equal(t, q.Uint64(), uint64(Split(z, y)))
			assert.Zero(t, r.Cmp(number(z)))
		}
	})
}

func TestPublishedVectors(t *testing.T) {
	third := []uint64{1, 0}
	assert.Equal(t, uint32(0x55555555), Split(third, []uint64{3, 0}))
	assert.Equal(t, []uint64{1, 0}, third)
	x := []uint64{1<<64 - 1, 1, 0}
	Mul(x, 1<<64-1)
	assert.Equal(t, []uint64{1, 1<<64 - 3, 1}, x)
	Div(x, 1<<64-1)
	assert.Equal(t, []uint64{1<<64 - 1, 1, 0}, x)
	assert.Equal(t, 65, Len(x))
	assert.Zero(t, Len([]uint64{0, 0}))
}
