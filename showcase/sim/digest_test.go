package sim

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// eventful is a small fleet to which everything happens that a script can do.
func eventful() Scenario {
	sc := T1()
	sc.Replicas, sc.Clients, sc.Later, sc.Noisy = 24, 12, 4, 2
	sc.ProbeLoss, sc.Tick, sc.Weather, sc.Deadline = 100, 50*Millisecond, 2*Second, 2*Second
	sc.Script = []Change{
		{At: 500 * Millisecond, Do: ChangeLoad, Value: 12_000},
		{At: Second, Do: ChangeState, From: 20, To: 24, Value: int(StateUp)},
		{At: 1200 * Millisecond, Do: ChangeFailing, From: 5, To: 6, Value: 5000},
		{At: 1300 * Millisecond, Do: ChangeNoise, From: 8, To: 10, Value: 1},
		{At: 1500 * Millisecond, Do: ChangeState, From: 0, To: 3, Value: int(StateDead)},
		{At: 1600 * Millisecond, Do: ChangeState, From: 3, To: 4, Value: int(StateDraining)},
		{At: 2 * Second, Do: RestartClients, From: 0, To: 3, Spec: "round_robin seed=3"},
		{At: 2 * Second, Do: ReloadClients, From: 3, To: 6, Spec: "linear seed=4"},
		{At: 2200 * Millisecond, Do: ReloadClients, From: 6, To: 9, Spec: "weighted_round_robin seed=5"},
		{At: 2300 * Millisecond, Do: RestartClients, From: 9, To: 12, Spec: "prequal mode=sync seed=9"},
		{At: 2500 * Millisecond, Do: ChangeState, From: 0, To: 4, Value: int(StateUp)},
		{At: 2600 * Millisecond, Do: ChangeFailing, Value: 0},
		{At: 2700 * Millisecond, Do: ChangeState, From: 10, To: 12, Value: int(StateAbsent)},
		{At: 2800 * Millisecond, Do: ChangeNoise, From: 8, To: 10, Value: 0},
		{At: 3 * Second, Do: ReloadClients, Spec: "prequal seed=7"},
		{At: 3200 * Millisecond, Do: ReloadClients, Spec: "prequal seed=7"},
	}
	return sc
}

const eventfulSpan = 4 * Second

// golden is what runs must come to, on every machine. A change of these figures is a change of the
// model or of a policy: say which.
var golden = []struct {
	name     string
	scenario func() Scenario
	spec     string
	traffic  uint64
	run      uint64
}{
	{"t1 prequal", T1, "prequal", 0xab85fedb5ff7539d, 0xa0c35457fbe9a22e},
	{"t2 weighted", T2, "weighted_round_robin blackout_period=1s", 0x8a4937317356fdcc, 0x48ffcce33a90efa6},
	{"t3 yarp", T3, "yarp_power_of_two", 0xa9f976c3c9ae1a7d, 0xd34550e9b8303478},
	{"antagonists c3", Antagonists, "c3", 0x983b06c5fd431b5c, 0x124827c905a9fd21},
	{"weather sync", Weather, "prequal mode=sync", 0x780e0c377e5399e3, 0x32274874e46da9},
	{"neighbours linear", Neighbours, "linear", 0x6767b5a4cf2a7375, 0xa31288de6ce608cd},
	{"calm omniscient", Calm, Omniscient, 0x40b704bfb25cb647, 0x9dd95628f0a20115},
	{"eventful", eventful, "prequal", 0x7056d63eb325b2c7, 0x8bf78ff4b4d42670},
}

func goldenRun(t require.TestingT, k int, mk Maker) *World {
	g := golden[k]
	sc := g.scenario()
	if sc.Replicas == 100 {
		sc = small(sc)
	}
	w, err := NewWorld(sc, g.spec, mk)
	require.NoError(t, err)
	require.NoError(t, w.Run(eventfulSpan))
	return w
}

func TestGoldenDigests(t *testing.T) {
	for k, g := range golden {
		w := goldenRun(t, k, native)
		assert.Equal(t, g.traffic, w.TrafficHash(), "%s: traffic is %#x", g.name, w.TrafficHash())
		assert.Equal(t, g.run, w.Hash(), "%s: run is %#x", g.name, w.Hash())
	}
}

// Worlds that run at once, on however many threads, do not touch each other.
func TestDigestsDoNotDependOnWorkers(t *testing.T) {
	for _, workers := range []int{2, 8} {
		var wg sync.WaitGroup
		got := make([]uint64, workers)
		for i := range got {
			wg.Go(func() { got[i] = goldenRun(t, len(golden)-1-i%2, native).Hash() })
		}
		wg.Wait()
		for i := range got {
			assert.Equal(t, golden[len(golden)-1-i%2].run, got[i])
		}
	}
}

// The module decides as the native engine does, whatever happens to the fleet.
func TestWasmHasTheSameDigests(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module; the page's tests compare its worlds in short mode")
	}
	ctx := context.Background()
	rt, err := host.NewRuntime(ctx)
	require.NoError(t, err)
	defer func() { assert.NoError(t, rt.Close(ctx)) }()
	m, err := rt.LoadEngine(ctx)
	require.NoError(t, err)
	made := 0
	mk := Maker{
		Machine: func(spec string, salt uint64) (engine.Machine, error) {
			made++
			return m.Instantiate(ctx, spec, salt)
		},
		Discard: func(ms []engine.Machine) {
			for _, x := range ms {
				made--
				assert.NoError(t, x.(*host.Instance).Close(ctx))
			}
		},
	}
	for k, g := range golden {
		if g.spec == Omniscient {
			continue
		}
		w := goldenRun(t, k, mk)
		assert.Equal(t, g.run, w.Hash(), g.name)
		if g.name == "eventful" {
			c, err := w.Clone()
			require.NoError(t, err)
			for _, x := range []*World{w, c} {
				require.NoError(t, x.Run(eventfulSpan+Second))
			}
			assert.Equal(t, w.Hash(), c.Hash())
			c.Close()
		}
		w.Close()
	}
	assert.Zero(t, made, "instances that were not given back")
}
