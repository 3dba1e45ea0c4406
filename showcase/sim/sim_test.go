package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var native = Maker{Machine: Native}

func small(sc Scenario) Scenario {
	sc.Replicas, sc.Clients = 30, 30
	return sc
}

func world(t *testing.T, sc Scenario, spec string) *World {
	t.Helper()
	w, err := NewWorld(sc, spec, native)
	require.NoError(t, err)
	return w
}

func TestSameSeedSameRun(t *testing.T) {
	sc := small(Weather())
	a := world(t, sc, "prequal seed=7")
	b := world(t, sc, "prequal seed=7")
	require.NoError(t, a.Run(3*Second))
	for at := int64(0); at <= 3*Second; at += 7 * Millisecond { // in pieces, and looked at
		require.NoError(t, b.Run(at))
		b.Replicas(nil)
	}
	require.NoError(t, b.Run(3*Second))
	assert.Equal(t, a.Hash(), b.Hash())
	assert.Equal(t, a.Summary(), b.Summary())

	sc.Seed++
	c := world(t, sc, "prequal seed=7")
	require.NoError(t, c.Run(3*Second))
	assert.NotEqual(t, a.Hash(), c.Hash())
	assert.NotEqual(t, a.TrafficHash(), c.TrafficHash())
}

func TestPolicyNeverChangesTheTraffic(t *testing.T) {
	specs := []string{"prequal seed=7", "prequal seed=8 probe_rate=5", "round_robin seed=1",
		"random seed=1", "least_loaded", "power_of_two seed=1 choices=2"}
	sc := small(Weather())
	var worlds []*World
	for _, s := range specs {
		worlds = append(worlds, world(t, sc, s))
	}
	change := func(at int64, f func(*World)) {
		for _, w := range worlds {
			require.NoError(t, w.Run(at))
			f(w)
		}
	}
	change(Second, func(w *World) { w.SetLoad(13_000) })
	change(2*Second, func(w *World) { w.SetState(3, StateDead); w.SetNoisy(5) })
	change(3*Second, func(*World) {})
	first := worlds[0].Summary()
	for i, w := range worlds[1:] {
		s := w.Summary()
		assert.Equal(t, first.Traffic, s.Traffic, specs[i+1])
		assert.Equal(t, first.Totals.Arrivals, s.Totals.Arrivals)
		assert.NotEqual(t, first.Hash, s.Hash, "policies must decide differently")
		for r := range s.Replicas {
			assert.Equal(t, first.Replicas[r].Busy, s.Replicas[r].Busy, "neighbour of %s", Name(r))
		}
	}
}

func TestNothingIsLost(t *testing.T) {
	for _, spec := range []string{"prequal seed=7", "round_robin seed=1"} {
		sc := small(Neighbours())
		sc.Load, sc.Deadline = 18_000, 400*Millisecond
		w := world(t, sc, spec)
		require.NoError(t, w.Run(Second))
		for i := range 10 {
			w.SetState(3*i, StateDead)
		}
		require.NoError(t, w.Run(2*Second))
		for i := range 10 {
			w.SetState(3*i, StateUp)
		}
		require.NoError(t, w.Run(3*Second))
		for i := range sc.Replicas {
			w.SetState(i, StateDraining)
		}
		require.NoError(t, w.Run(3200*Millisecond))
		s := w.Totals
		assert.Equal(t, s.Arrivals, s.Completed+s.Errors+uint64(w.InFlight()))
		assert.Equal(t, s.Errors, s.Timeouts+s.Refused+s.Unplaced)
		for _, n := range []uint64{s.Completed, s.Timeouts, s.Refused, s.Unplaced} {
			assert.NotZero(t, n, "the test must meet every end: %+v", s)
		}
		var placed uint64
		for _, n := range s.ByRegime {
			placed += n
		}
		assert.Equal(t, s.Arrivals-s.Unplaced, placed)
	}
}

// The area under RIF is the sum of all stays, exactly, at every instant.
func TestLittleIsExact(t *testing.T) {
	w := world(t, small(Weather()), "random seed=1")
	require.NoError(t, w.Run(4*Second))
	for i := range w.replicas {
		r := &w.replicas[i]
		area, _ := r.account(w.now)
		stays := r.stay
		for _, j := range r.jobs {
			stays += w.now - int64(w.queries[j.id].met.At)
		}
		assert.Equal(t, area, stays, Name(i))
		assert.Positive(t, area)
	}
}

func TestScenarioIsChecked(t *testing.T) {
	sc := Calm()
	sc.Replicas = 0
	_, err := NewWorld(sc, "random", native)
	assert.ErrorContains(t, err, "replicas=0: must be 1 to 20000")
	_, err = NewWorld(Calm(), "prequal quantile=2", native)
	assert.ErrorContains(t, err, "quantile")
	_, ok := Named("nowhere")
	assert.False(t, ok)
}

func TestBadSpecLeavesTheWorldRunning(t *testing.T) {
	w := world(t, small(Calm()), "prequal seed=7")
	require.NoError(t, w.Run(Second))
	require.Error(t, w.SetSpec("prequal pool=0"))
	require.NoError(t, w.Run(2*Second))
	require.NoError(t, w.SetSpec("random seed=1"))
	require.NoError(t, w.Run(3*Second))
	assert.NotZero(t, w.Totals.ByRegime[1])
	assert.NotZero(t, w.Totals.ByRegime[0])
}

// The scene that the page opens with: a few noisy machines, a fleet a little over its
// allocation. A policy that does not look loses queries; one that probes loses none.
func TestProbingSavesTheTail(t *testing.T) {
	sc := Neighbours()
	sc.Replicas, sc.Clients = 48, 24
	got, err := Compare(sc, 12*Second, native, "prequal seed=7", "round_robin seed=1")
	require.NoError(t, err)
	prequal, robin := got[0], got[1]
	assert.Zero(t, prequal.Totals.Errors)
	assert.Less(t, prequal.P99, 300*Millisecond)
	assert.Greater(t, robin.P99, 2*Second)
	assert.NotZero(t, robin.Totals.Timeouts)
}

// Hot decisions are rare at the paper's threshold, so the page provokes them in these two ways.
func TestHotCanBeProvoked(t *testing.T) {
	sc := Neighbours()
	sc.Replicas, sc.Clients = 48, 24
	hot := func(w *World) uint64 { return w.Totals.ByRegime[2] }
	w := world(t, sc, "prequal seed=7 quantile=0.05")
	require.NoError(t, w.Run(4*Second))
	assert.Greater(t, hot(w)*20, w.Totals.Arrivals, "threshold pulled down")

	w = world(t, sc, "prequal seed=7")
	require.NoError(t, w.Run(4*Second))
	before := hot(w)
	for i := range sc.Replicas {
		if i%3 != 0 {
			w.SetState(i, StateDead)
		}
	}
	require.NoError(t, w.Run(6*Second))
	t.Logf("hot after losing two thirds: %d, before: %d", hot(w)-before, before)
	assert.Greater(t, hot(w)-before, uint64(100), "two thirds of the fleet lost")
}
