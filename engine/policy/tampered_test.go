package policy_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
)

// Whatever the words of a block, a machine that weighs loads refuses it or serves on: it never
// panics.
func TestTamperedBlocksAreRefusedOrServed(t *testing.T) {
	for _, spec := range []string{
		"least_request seed=7", "least_request seed=7 slow_start=50us bias=0", "peak_ewma seed=7", "linear seed=7", "c3 seed=7 pool=40", "yarp_power_of_two seed=7 poll=1ms",
	} {
		t.Run(spec, func(t *testing.T) {
			refused, served := 0, 0
			rapid.Check(t, func(r *rapid.T) {
				e, w := walked(t, spec, rapid.Uint64Range(0, 15).Draw(r, "walk"), 200)
				block, err := e.Snapshot(nil)
				require.NoError(t, err)
				for range rapid.IntRange(1, 3).Draw(r, "words") {
					at := rapid.IntRange(4, len(block)/8-1).Draw(r, "word")
					v := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1 << 32, 1 << 63, 1<<64 - 1})).Draw(r, "value")
					binary.LittleEndian.PutUint64(block[at*8:], v)
				}
				if err := e.Restore(block); err != nil {
					require.ErrorIs(t, err, engine.ErrBlock)
					refused++
				} else {
					served++
				}
				for range 60 {
					w.Step(e)
				}
			})
			require.NotZero(t, refused)
			require.NotZero(t, served)
		})
	}
}
