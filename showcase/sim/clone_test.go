package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A clone taken at any moment runs on to the same digest as the world it was taken from, in
// pieces or not, and as the world that nobody cloned.
func TestCloneIsExact(t *testing.T) {
	sc := eventful()
	specs := []string{"prequal", "weighted_round_robin blackout_period=0s", "prequal mode=sync", "c3", "linear", "yarp_power_of_two",
		"peak_ewma", "least_request", "smooth_weighted_round_robin", Omniscient}
	if testing.Short() {
		specs = specs[:2]
	}
	for _, spec := range specs {
		plain := world(t, sc, spec)
		require.NoError(t, plain.Run(eventfulSpan))
		w := world(t, sc, spec)
		var clones []*World
		for at := 137 * Millisecond; at < eventfulSpan; at += 619 * Millisecond {
			require.NoError(t, w.Run(at))
			c, err := w.Clone()
			require.NoError(t, err)
			assert.Equal(t, w.Summary(), c.Summary())
			clones = append(clones, c)
		}
		require.NoError(t, w.Run(eventfulSpan))
		require.Equal(t, plain.Summary(), w.Summary(), spec)
		for _, c := range clones {
			require.NoError(t, c.Run(eventfulSpan))
			assert.Equal(t, plain.Summary(), c.Summary(), spec)
		}
	}
}

// Every part of a world is copied: a clone that runs on leaves nothing behind in the original.
func TestCloneSharesNothing(t *testing.T) {
	w := world(t, eventful(), "prequal mode=sync")
	m, err := w.Measure(Second, 3*Second)
	require.NoError(t, err)
	require.NoError(t, w.Run(1400*Millisecond))
	snapshot, err := w.Clone()
	require.NoError(t, err)
	require.NoError(t, w.Run(eventfulSpan))
	measured := *m
	for range 3 {
		again, err := snapshot.Clone()
		require.NoError(t, err)
		again.SetLoad(20_000)
		again.SetFailing(1, 9000)
		require.NoError(t, again.Run(2*Second))
	}
	require.NoError(t, snapshot.Run(eventfulSpan))
	assert.Equal(t, w.Summary(), snapshot.Summary())
	assert.Equal(t, measured, *m)
	assert.Equal(t, measured, *snapshot.Measures()[0])
}

// A fork has the traffic, the neighbours and the queries in flight of its world, and another policy.
func TestForksGetTheSameTraffic(t *testing.T) {
	w := world(t, small(T1()), "prequal")
	m, err := w.Measure(Second, 3*Second)
	require.NoError(t, err)
	require.NoError(t, w.Run(2*Second))
	for _, spec := range []string{"random", "least_loaded", "prequal mode=sync", Omniscient} {
		f, err := w.Fork(spec)
		require.NoError(t, err)
		assert.Equal(t, w.InFlight(), f.InFlight())
		straight, err := w.Clone()
		require.NoError(t, err)
		for _, x := range []*World{f, straight} {
			require.NoError(t, x.Run(4*Second))
		}
		assert.Equal(t, straight.TrafficHash(), f.TrafficHash())
		assert.NotEqual(t, straight.Hash(), f.Hash())
		assert.Equal(t, straight.Totals.Arrivals, f.Totals.Arrivals)
		for i := range f.replicas {
			assert.Equal(t, straight.replicas[i].busy, f.replicas[i].busy)
			assert.Equal(t, straight.replicas[i].spare, f.replicas[i].spare)
		}
		all, _ := f.Measures()[0].Ended()
		assert.Positive(t, all)
	}
	_, err = w.Fork("prequal pool=0")
	require.Error(t, err)
	require.NoError(t, w.Run(3*Second), "a fork that fails leaves its world running")
	all, _ := m.Ended()
	assert.Positive(t, all)
}
