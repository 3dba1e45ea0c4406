//go:build !wasip1

package probe_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// A clone says what the original says, from then on too, and neither hears of the other's queries.
func TestACloneRemembersAndIsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := probe.EstimatorConfig{Ring: 4, Tags: 8}
		a, err := probe.NewEstimator(c)
		require.NoError(t, err)
		var now engine.Instant
		steps := func(es ...*probe.Estimator) {
			for range rapid.IntRange(1, 40).Draw(t, "queries") {
				rif := rapid.Uint32Range(0, 20).Draw(t, "rif")
				took := engine.Instant(rapid.Int64Range(1, int64(sec)).Draw(t, "took"))
				for _, e := range es {
					e.Finish(now+took, e.Arrive(now, rif))
				}
				now += took
			}
		}
		said := func(e *probe.Estimator) (out [24]engine.Duration) {
			for rif := range out {
				out[rif] = e.Estimate(now, uint32(rif))
			}
			return out
		}
		steps(a)
		b := a.Clone()
		require.Equal(t, said(a), said(b))
		steps(a, b)
		require.Equal(t, said(a), said(b))
		was := said(a)
		for range 100 {
			b.Finish(now, b.Arrive(now-engine.Instant(90*sec), 3))
		}
		require.Equal(t, was, said(a))
		require.NotEqual(t, was, said(b))
	})
}
