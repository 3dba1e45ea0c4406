package experiment

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// read measures a trial in a small fleet, and gives its figures by name.
func read(t *testing.T, one trial, size Size) map[string]float64 {
	t.Helper()
	values, err := one.measure(t.Context(), gauges, size, 1)
	require.NoError(t, err)
	out := map[string]float64{}
	for i, g := range gauges {
		out[g.Name] = values[i]
	}
	return out
}

var small = Size{Seeds: 1, Replicas: 20, Clients: 20}

func TestGauges(t *testing.T) {
	got := read(t, trial{fleet: at(.9, sim.T1()), spec: "prequal", span: 10 * sim.Second}, small)
	assert.Zero(t, got["failed"])
	for _, four := range [][]string{{"p50", "p90", "p99", "p99.9"}, {"RIF p50", "RIF p90", "RIF p99", "RIF p99.9"}} {
		for i := 1; i < len(four); i++ {
			assert.Less(t, got[four[i-1]], got[four[i]], four[i])
		}
	}
	// Half of the queries need 60 ms, or more on an old machine.
	assert.Greater(t, got["p50"], 60.0)
	assert.Less(t, got["p50"], 110.0)
	assert.Greater(t, got["CPU p99"], 100.0)
	assert.Less(t, got["old"], 20.0, "equal CPU is 19 %")
	assert.InDelta(t, 3, got["probes"], 0.01)
	assert.Less(t, got["hot"]+got["blind"], 10.0)

	blind := read(t, trial{fleet: at(.9, sim.T3()), spec: "random", span: 10 * sim.Second}, small)
	assert.True(t, math.IsNaN(blind["old"]), "no machine is")
	assert.Zero(t, blind["probes"])
	got = read(t, trial{fleet: at(.9, sim.T1()), spec: "random", span: 10 * sim.Second}, small)
	assert.InDelta(t, 30, got["old"], 1, "three replicas in ten")
	got = read(t, trial{fleet: at(.9, sim.T1()), spec: "prequal probe_rate=0 idle=0", span: sim.Second}, small)
	assert.EqualValues(t, 100, got["blind"])
	got = read(t, trial{fleet: at(.9, sim.T1()), spec: "prequal quantile=0", span: sim.Second}, small)
	assert.Greater(t, got["hot"], 90.0)
}

func TestWhoMissesTheDeadlineTimedOut(t *testing.T) {
	got := read(t, trial{fleet: at(3, sim.T1()), spec: "random", span: 10 * sim.Second}, small)
	assert.Greater(t, got["failed"], 10.0)
	assert.True(t, math.IsInf(got["p99"], 1))
	assert.False(t, math.IsInf(got["p50"], 1))
}

// As many noisy machines in proportion, and one at least.
func TestNoisyMachinesFollowTheFleet(t *testing.T) {
	for replicas, noisy := range map[int]int{10: 1, 100: 2, 120: 3} {
		one := trial{fleet: at(.5, sim.Antagonists()), spec: "round_robin", span: sim.Second}
		seen := 0
		one.around = func(m engine.Machine) engine.Machine { seen++; return m }
		size := Size{Seeds: 1, Replicas: replicas, Clients: 3}
		sc := one.scene(size, 7)
		assert.Equal(t, noisy, sc.Noisy)
		assert.EqualValues(t, 7, sc.Seed)
		read(t, one, size)
		assert.Equal(t, 3, seen, "a wrapper for each client")
	}
}

func TestChooseRefusesWhatNothingMeasures(t *testing.T) {
	assert.Panics(t, func() { choose("p99", "luck") })
}

// Every case of every experiment is a world that can be made: it ends because it is told to.
func TestEveryCaseCanBegin(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, e := range All() {
		for _, r := range e.cases(Size{Seeds: 1, Replicas: 10, Clients: 2}) {
			_, err := r.measure(ctx, 1)
			assert.ErrorIs(t, err, context.Canceled, "%s %v", e.Name, r.keys)
		}
	}
}

// What the paper is about, in a fifth of its fleet.
func TestPrequalOutlastsBalanceOfCPU(t *testing.T) {
	r, err := Run(t.Context(), ramp(), Options{Size: small, Workers: 2, Only: "1.57"})
	require.NoError(t, err)
	assert.Greater(t, cell(t, r, wrr, "failed"), 10.0)
	assert.Less(t, cell(t, r, "prequal", "failed"), 0.1)
	assert.Less(t, cell(t, r, "prequal", "p90"), 500.0)
}
