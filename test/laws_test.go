package test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/hosttest"
	"github.com/headroom-lb/headroom/test/guestbuild"
)

// The laws look from outside, so that they hold for a guest as they do natively.
func TestAGuestKeepsTheLawsOfPools(t *testing.T) {
	ctx := context.Background()
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	r, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer r.Close(ctx)
	m, err := r.Load(ctx, wasm)
	require.NoError(t, err)
	for name, m := range map[string]*host.Module{"plain": m, "on fuel": fuelled(t)} {
		t.Run(name, func(t *testing.T) { keepsTheLawsOfPools(t, m) })
	}
}

func keepsTheLawsOfPools(t *testing.T, m *host.Module) {
	ctx := context.Background()
	guests := func(settings string) enginetest.Maker {
		return func() (engine.Machine, func(), error) {
			guest, err := m.Instantiate(ctx, "prequal "+settings, 0)
			if err != nil {
				return nil, nil, err
			}
			return guest, func() { _ = guest.Close(ctx) }, nil
		}
	}
	for _, law := range enginetest.PoolLaws() {
		require.NoError(t, law.Check(guests, 1, 400), law.Name)
	}
}

// What binds a guest of others binds ours, by way of the ABI and under the limit of a call.
func TestTheBuiltInModuleKeepsTheLawsOfGuests(t *testing.T) {
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	for spec, claims := range map[string][]string{
		"prequal seed=3": nil, "prequal mode=sync": nil, "power_of_two": {"load", "even"}, "weighted_rendezvous": {"affinity", "minimal_disruption"},
		"smooth_weighted_round_robin": {"proportional"},
	} {
		t.Run(spec, func(t *testing.T) { hosttest.TestGuest(t, wasm, hosttest.Options{Spec: spec, Claims: claims, Runs: 5}) })
	}
}
