package enginetest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The rule must pass what is right and catch what is off by as much as it was sized for.
func TestAShareTestPassesTheRightAndCatchesTheOff(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	caught := 0
	for range 20 {
		n := Draws(0.2, 0.05)
		right, off := 0, 0
		for range n {
			if r.Float64() < 0.2 {
				right++
			}
			if r.Float64() < 0.2*1.05 {
				off++
			}
		}
		assert.NoError(t, CheckShare(0.2, right, n))
		if CheckShare(0.2, off, n) != nil {
			caught++
		}
	}
	assert.GreaterOrEqual(t, caught, 16)
	assert.Greater(t, Draws(0.01, 0.05), Draws(0.1, 0.05))
}
