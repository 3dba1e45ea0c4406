package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestSpecsOfWeightedPoliciesPrintCanonically(t *testing.T) {
	for spec, want := range map[string]string{
		"weighted_random": "weighted_random seed=0",
		"smooth_weighted_round_robin start=random seed=5":           "smooth_weighted_round_robin seed=5",
		"smooth_weighted_round_robin start=zero":                    "smooth_weighted_round_robin seed=0 start=zero",
		"weighted_round_robin weight_update_period=1s":              "weighted_round_robin seed=0",
		"weighted_round_robin weight_expiration_period=3m":          "weighted_round_robin seed=0",
		"weighted_round_robin blackout_period=0":                    "weighted_round_robin seed=0 blackout_period=0",
		"weighted_round_robin error_utilization_penalty=2.5 seed=2": "weighted_round_robin seed=2 error_utilization_penalty=2.5",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, p.Spec(), spec)
		again, err := policy.Parse(p.Spec())
		require.NoError(t, err)
		assert.Equal(t, p.Spec(), again.Spec())
	}
}

func TestSpecErrorsOfWeightedPoliciesNameTheRange(t *testing.T) {
	for spec, want := range map[string]string{
		"weighted_random weight=3":                            "weighted_random: weight: no such setting; want one of seed",
		"smooth_weighted_round_robin start=1":                 "smooth_weighted_round_robin: start=1: want one of random, zero",
		"weighted_round_robin weight_update_period=99ms":      "weighted_round_robin: weight_update_period=99ms: want 100ms to 60m",
		"weighted_round_robin weight_expiration_period=0":     "weighted_round_robin: weight_expiration_period=0: want 1us to 60m",
		"weighted_round_robin blackout_period=61m":            "weighted_round_robin: blackout_period=61m: want 0 to 60m",
		"weighted_round_robin error_utilization_penalty=1001": "weighted_round_robin: error_utilization_penalty=1001: want 0 to 1000",
	} {
		_, err := policy.Parse(spec)
		require.ErrorIs(t, err, engine.ErrConfig, spec)
		assert.EqualError(t, err, want, spec)
	}
	_, err := policy.NewSmoothWeightedRoundRobin(1, "")
	assert.ErrorIs(t, err, engine.ErrConfig)
}
