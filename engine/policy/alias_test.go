package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
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
