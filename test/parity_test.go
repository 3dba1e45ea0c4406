package test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/test/guestbuild"
)

// specs are what parity is checked for: every policy, and settings that reach the other
// branches of some.
func specs() (all []string) {
	for _, name := range policy.Names() {
		all = append(all, name+" seed=7")
	}
	return append(all,
		"power_of_two seed=3 choices=4",
		"least_request seed=3 slow_start=50us bias=0.5 aggression=2",
		"least_request seed=4 bias=0 choices=3",
		"peak_ewma seed=3 tau=1ms penalty=0",
		"yarp_power_of_two seed=3 poll=1ms",
		"linear seed=3 pool=40 lambda=1 max_age=20us",
		"c3 seed=3 pool=17 clients=9 alpha=0.3 max_age=20us",
		"priority seed=3 overprovision=1 panic_threshold=0.9 panic=fail_closed",
		"locality seed=3 overprovision=1 zone=zone-a callers=zone-a:5,zone-b:1",
		"prequal seed=1 pool=4 quantile=0.3 max_age=20us window=16",
		"prequal seed=2 pool=40 quantile=0 remove_rate=0.25 probe_rate=1.4142",
		"prequal seed=3 quantile=1 remove_rate=0 reuse=2.5 idle=5us",
		"prequal seed=4 pool=17 min_pool=5 aversion=off window_age=3us",
		"prequal seed=5 variant=keen",
		"prequal seed=6 variant=keen pool=40 probe_rate=1.4142 quantile=0.3 max_age=20us window=16",
		"prequal seed=5 mode=sync",
		"prequal seed=6 mode=sync probes=16 wait=3 quantile=0.3 window=16 window_age=3us",
	)
}

// The module built from the sources at hand and the native engine answer every call alike,
// and their states are the same bytes.
func TestNativeAndGuestAreOne(t *testing.T) {
	ctx := context.Background()
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	r, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer r.Close(ctx)
	m, err := r.Load(ctx, wasm)
	require.NoError(t, err)
	require.Equal(t, host.Guard{}, m.Guard())
	calls := 1_000_000
	if testing.Short() {
		calls = 50_000
	}
	sameAsNative(t, m, calls)
}

// foreign gives a module another digest, so that it is taken for a stranger's.
func foreign(wasm []byte) []byte { return append(slices.Clone(wasm), 0, 3, 1, 'x', 0) }

// fuelled loads the module built from the sources at hand as if it were a stranger's.
func fuelled(t *testing.T) *host.Module {
	t.Helper()
	ctx := context.Background()
	wasm, err := guestbuild.Build("..", "./wasm")
	require.NoError(t, err)
	r, err := host.NewRuntime(ctx, host.WithFuel(host.DefaultFuel))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(ctx)) })
	m, err := r.Load(ctx, foreign(wasm))
	require.NoError(t, err)
	require.Equal(t, host.Guard{Fuel: host.DefaultFuel}, m.Guard())
	return m
}

// On fuel, the module does the same.
func TestNativeAndGuestOnFuelAreOne(t *testing.T) {
	calls := 300_000
	if testing.Short() {
		calls = 50_000
	}
	sameAsNative(t, fuelled(t), calls)
}

func sameAsNative(t *testing.T, m *host.Module, calls int) {
	t.Helper()
	ctx := context.Background()
	all := specs()
	regimes := map[string]int{}
	for _, spec := range all {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		native := engine.New(p, engine.Config{Salt: 5})
		guest, err := m.Instantiate(ctx, spec, 5)
		require.NoError(t, err)
		require.Equal(t, p.Spec(), guest.Spec())
		a, b := enginetest.NewWalker(99), enginetest.NewWalker(99)
		require.NoError(t, a.Begin(native))
		require.NoError(t, b.Begin(guest))
		var one, two []byte
		for i := range calls / len(all) {
			want, got := a.Step(native), b.Step(guest)
			if !want.Same(got) {
				t.Fatalf("%s, call %d:\nnative %s\nguest  %s", spec, i, want.Text(), got.Text())
			}
			if i%500 == 0 {
				one, _ = native.Snapshot(one[:0])
				two, err = guest.Snapshot(two[:0])
				require.NoError(t, err)
				require.Equal(t, one, two, "%s, call %d: the blocks differ", spec, i)
				if i%1000 == 0 { // a block goes either way
					require.NoError(t, guest.Restore(one))
					require.NoError(t, native.Restore(two))
				}
			}
		}
		var c engine.Counters
		var f engine.Fit
		require.NoError(t, guest.Inspect(&c, &f))
		regimes["fallback"] += int(c.Fallbacks)
		regimes["decided"] += int(c.Decisions)
		require.NoError(t, guest.Close(ctx))
	}
	t.Logf("%d calls over %d specs; prequal decided %d times, %d of them by fallback", calls, len(all), regimes["decided"], regimes["fallback"])
}
