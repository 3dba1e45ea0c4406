package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func TestEstimatorDefaultsAreThoseOfItsDocs(t *testing.T) {
	e, err := NewEstimator(EstimatorConfig{})
	require.NoError(t, err)
	assert.Equal(t, EstimatorConfig{Samples: 9, Memory: 10 * engine.Second, Hold: 30 * engine.Second, Ring: 16, Tags: 64}, e.cfg)
	most := EstimatorConfig{Memory: engine.MaxLatency}.withDefaults()
	assert.Equal(t, engine.MaxLatency, most.Hold)
}

// The bounds belong to their ranges, and what is one beyond does not.
func TestEstimatorBoundsAreInside(t *testing.T) {
	for _, c := range []EstimatorConfig{
		{Samples: 1}, {Samples: 64}, {Memory: 1}, {Memory: engine.MaxLatency}, {Memory: 5, Hold: 5}, {Hold: engine.MaxLatency},
		{Ring: 1}, {Ring: 256}, {Tags: 8}, {Tags: 4096},
	} {
		assert.NoError(t, c.Validate(), "%+v", c)
		_, err := NewEstimator(c)
		assert.NoError(t, err)
	}
	for _, c := range []EstimatorConfig{
		{Samples: -1}, {Samples: 65}, {Memory: -1}, {Memory: engine.MaxLatency + 1}, {Memory: 5, Hold: 4}, {Hold: engine.MaxLatency + 1},
		{Ring: -1}, {Ring: 257}, {Tags: 4}, {Tags: 8192}, {Tags: 12}, {Tags: -8},
	} {
		assert.ErrorIs(t, c.Validate(), engine.ErrConfig, "%+v", c)
	}
}
