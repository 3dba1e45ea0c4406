package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

func TestRunTimesEveryPolicyWithoutAllocations(t *testing.T) {
	ctx := context.Background()
	r, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer r.Close(ctx)
	m, err := r.LoadEngine(ctx)
	require.NoError(t, err)
	rep, err := Run(ctx, m, Options{Specs: policy.Names(), Candidates: []int{8, 100}, Rounds: 30})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(rep.Rows), 2*len(policy.Names())+2) // prequal's readings have rows of their own
	for _, row := range rep.Rows {
		t.Logf("%-22s n=%-4d native %6.0f  guest %6.0f  x%.1f", row.Policy+" "+row.Operation, row.Candidates, row.Native, row.Guest, row.Ratio)
		assert.Zero(t, row.NativeAlloc, row.Policy)
		assert.Zero(t, row.GuestAlloc, row.Policy)
	}
	t.Logf("empty %.1f", rep.EmptyCall)
	assert.Positive(t, rep.EmptyCall)
}
