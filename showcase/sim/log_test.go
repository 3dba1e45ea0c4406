package sim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The quick logarithm is the slow one, bit for bit, wherever it says that it is sure; and it
// nearly always is.
func TestTheQuickLogarithmIsTheSlowOne(t *testing.T) {
	n := 3_000_000
	if testing.Short() {
		n = 200_000
	}
	s, unsure := newStream(1, streamDemands, 0), 0
	check := func(x uint64) {
		x |= 1 << 63
		quick, sure := quickLog(x)
		if !sure {
			unsure++
			return
		}
		if slow := slowLog(x, 32); quick != slow {
			require.Equal(t, slow, quick, "x=%#x", x)
		}
	}
	for range n {
		check(s.next())
	}
	assert.Less(t, unsure, 10, "of %d", n)
	for i := range uint64(1) << logSteps { // where the table turns
		for d := range uint64(5) {
			check(i<<(63-logSteps) + d - 2)
		}
	}
	for k := range 63 { // close to one and to two
		check(1 << k)
		check(1<<63 - 1<<k)
	}
	for _, u := range []uint64{1, 1 << 20, 1 << 63, 3 << 62, math.MaxUint64, math.MaxUint64 - 1} {
		want := -math.Log(float64(u) / math.Pow(2, 64))
		assert.InDelta(t, want, float64(negLn(u))/(1<<32), 1e-8, "u=%d", u)
	}
}
