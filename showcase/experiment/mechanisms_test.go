package experiment

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// reduced measures the cases with a key of a small version of an experiment, under one seed.
func reduced(t *testing.T, e Experiment, only string, size Size) *Result {
	t.Helper()
	r, err := Run(t.Context(), e, Options{Size: size, Workers: 2, Only: only})
	require.NoError(t, err)
	return r
}

func figure(t *testing.T, r *Result, column string, keys ...string) float64 {
	t.Helper()
	c, err := r.Cell(column, keys...)
	require.NoError(t, err)
	return c.Mean()
}

func TestRemovalThatOutrunsTheProbes(t *testing.T) {
	r := reduced(t, probeRate(), "0.71", Size{1, 20, 20})
	assert.Greater(t, figure(t, r, "blind", "one, not fitted"), 50.0)
	assert.Less(t, figure(t, r, "blind", "one"), 1.0, "the fit removes less")
	assert.Less(t, figure(t, r, "p99", "one"), figure(t, r, "p99", "one, not fitted"))
}

// The remover takes the entry that it should, before the decision, and as often as it should.
func TestTheRemoverRemoves(t *testing.T) {
	for _, worst := range []bool{false, true} {
		c := under(t, func(m engine.Machine) engine.Machine {
			return &remover{Machine: m, quarters: 2, worst: worst}
		}, "prequal remove_rate=0 reuse=100", 20)
		c.read(1, 0, 5*engine.Millisecond) // the oldest
		c.read(2, 1, 9*engine.Millisecond)
		c.read(3, 2, engine.Millisecond) // decides, which makes it hot, and the worst
		c.read(4, 3, 6*engine.Millisecond)
		var d engine.Decision
		require.NoError(t, c.m.Decide(&engine.Query{Now: 5}, &d))
		assert.Len(t, c.entries(5), 4, "half a removal is none")
		require.NoError(t, c.m.Decide(&engine.Query{Now: 6}, &d))
		gone := engine.IDOf(sim.Name(map[bool]int{false: 0, true: 2}[worst]))
		left := c.entries(6)
		assert.Len(t, left, 3)
		for _, e := range left {
			assert.NotEqual(t, gone, e.ID)
		}
	}
	cold, slower, hot := &engine.Entry{Latency: 1}, &engine.Entry{Latency: 2}, &engine.Entry{Hot: true, RIF: 1}
	assert.True(t, worse(slower, cold))
	assert.True(t, worse(hot, slower))
	assert.False(t, worse(cold, hot))
	assert.True(t, worse(&engine.Entry{Hot: true, RIF: 2, Latency: 1}, &engine.Entry{Hot: true, RIF: 1, Latency: 9}))
}

func TestReuseHasToBeLimited(t *testing.T) {
	shipped, unlimited := ablations[0].trial(ablationRates[1]), ablated{spec: " reuse=1000000"}.trial(ablationRates[1])
	gs := choose("RIF p99.9")
	size := Size{1, 60, 60} // far from where a fleet is small
	a, err := shipped.measure(t.Context(), gs, size, 1)
	require.NoError(t, err)
	b, err := unlimited.measure(t.Context(), gs, size, 1)
	require.NoError(t, err)
	assert.Greater(t, b[0], 1.3*a[0])
}

// An estimator of another kind reaches the replicas.
func TestEstimatorsDiffer(t *testing.T) {
	seen := map[float64]string{}
	for _, s := range estimators {
		sc := at(1.1, sim.T1())
		sc.Seed, sc.Replicas, sc.Clients, sc.Estimator, sc.RIFBlind = 1, 20, 20, s.is, s.blind
		w, err := sim.NewWorld(sc, "prequal", sim.Maker{Machine: sim.Native})
		require.NoError(t, err)
		require.NoError(t, w.Run(40*sim.Second))
		h := float64(w.Hash() >> 11)
		assert.Empty(t, seen[h], "%s does as another", s.name)
		seen[h] = s.name
	}
}

func TestBunching(t *testing.T) {
	draws := func(next func(k int) int) float64 {
		b := newBunches(10)
		for k := range 200_000 { // fifty in a window
			b.add(warmUp+int64(k)*sim.Millisecond, next(k))
		}
		return b.index()
	}
	// A generator of full period: any will do.
	state := uint64(1)
	random := draws(func(int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state >> 33 % 10)
	})
	assert.InDelta(t, 0.9, random, 0.05, "ten share a fixed number of queries: a tenth less than by chance alone")
	assert.Less(t, draws(func(k int) int { return k % 10 }), 0.01, "turns are even")
	assert.Greater(t, draws(func(k int) int { return k / 50 % 10 }), 40.0, "all at once to the same one are a herd")
	slow := draws(func(k int) int {
		if k < 100_000 {
			return k % 5
		}
		return k % 10
	})
	assert.Less(t, slow, 0.05, "a change for good is none")

	b := newBunches(2)
	b.add(warmUp-1, 0)
	assert.Zero(t, b.windows+int(b.now[0]), "it settles first")
}

// Fleets and balancers come in the numbers that the size has, and none twice.
func TestSizesOfFleetsAndHerds(t *testing.T) {
	first := func(rs []run) (out []string) {
		for _, r := range rs {
			if len(out) == 0 || out[len(out)-1] != r.keys[0] {
				out = append(out, r.keys[0])
			}
		}
		return out
	}
	assert.Equal(t, []string{"1", "10", "100", "1000"}, first(herd().cases(herd().Size)))
	assert.Equal(t, []string{"2", "20"}, first(herd().cases(Size{1, 100, 20})))
	assert.Equal(t, []string{"100", "1000", "10000"}, first(scale().cases(scale().Size)))
	assert.Equal(t, []string{"1", "10"}, first(scale().cases(Size{1, 10, 1})))
	assert.Equal(t, []string{"2", "3", "4", "6", "8", "12", "16", "24", "32"}, first(smallFleet().cases(smallFleet().Size)))
	assert.Equal(t, []string{"2", "3", "4", "6", "8"}, first(smallFleet().cases(Size{1, 10, 10})))
}

func TestReplayServesWhatWasRecorded(t *testing.T) {
	var arrivals []sim.Arrival
	for i := range 4000 {
		arrivals = append(arrivals, sim.Arrival{At: int64(i)*5*sim.Millisecond + 1, Client: int32(i % 3), Work: int64(1+i%7) * 10 * sim.Millisecond})
	}
	fleet := sim.T3()
	fleet.Replicas = 3
	e, err := Replay(Recorded{Arrivals: arrivals, Fleet: fleet, Load: 0.5}, []string{"prequal", "random", sim.Omniscient})
	require.NoError(t, err)
	r := reduced(t, e, "", Size{Seeds: 2})
	assert.Equal(t, Size{2, 3, 3}, r.Size, "three replicas are enough if that is what there was")
	assert.Zero(t, figure(t, r, "failed", "prequal"))
	assert.GreaterOrEqual(t, figure(t, r, "p50", sim.Omniscient), 40.0)
	assert.Less(t, figure(t, r, "p99", sim.Omniscient), figure(t, r, "p99", "random"))
	assert.InDelta(t, 2.5, figure(t, r, "probes", "prequal"), 0.6)

	_, err = Replay(Recorded{Arrivals: arrivals[:1], Fleet: fleet, Load: 0.5}, nil)
	assert.ErrorContains(t, err, "needs two queries or more")
}
