package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script does what the calls do, at its instants.
func TestAScriptIsTheCallsThatItStandsFor(t *testing.T) {
	sc := small(Weather())
	plain := world(t, sc, "prequal")
	sc.Script = []Change{
		{At: Second, Do: ChangeLoad, Value: 13_000},
		{At: Second, Do: ChangeState, From: 3, To: 5, Value: int(StateDead)},
		{At: 1500 * Millisecond, Do: ChangeFailing, From: 7, To: 8, Value: 4000},
		{At: 2 * Second, Do: RestartClients, Spec: "random seed=1"},
	}
	scripted := world(t, sc, "prequal")
	require.NoError(t, scripted.Run(3*Second))
	for _, do := range []struct {
		at int64
		f  func()
	}{
		{Second, func() { plain.SetLoad(13_000); plain.SetState(3, StateDead); plain.SetState(4, StateDead) }},
		{1500 * Millisecond, func() { plain.SetFailing(7, 4000) }},
		{2 * Second, func() { require.NoError(t, plain.SetSpec("random seed=1")) }},
		{3 * Second, func() {}},
	} {
		require.NoError(t, plain.Run(do.at))
		do.f()
	}
	assert.Equal(t, plain.Hash(), scripted.Hash())
	assert.NotZero(t, scripted.Totals.Refused)
}

func TestScriptsAreChecked(t *testing.T) {
	for want, c := range map[string][]Change{
		"line 1: needs a policy":                      {{Do: RestartClients}},
		"line 1: no such action":                      {{Do: actions}},
		"line 2: lines must be in order of time":      {{At: 2, Do: ChangeLoad, Value: 1}, {At: 1, Do: ChangeLoad, Value: 1}},
		"line 1: From and To must be within 0 to 100": {{Do: ChangeFailing, From: 3, To: 101}},
		"line 1: From and To must be":                 {{Do: ChangeFailing, From: 3}},
		"line 1: Value 5 is out of range; at most 3":  {{Do: ChangeState, Value: 5}},
		"line 1: Value 0 is out of range":             {{Do: ChangeLoad}},
	} {
		sc := Calm()
		sc.Script = c
		assert.ErrorContains(t, sc.Validate(), want)
	}
	sc := small(Calm())
	sc.Script = []Change{{At: Second, Do: ReloadClients, Spec: "prequal pool=0"}}
	require.ErrorContains(t, world(t, sc, "prequal").Run(2*Second), "pool")
}

// Who joins late gets no query before, its share after; who leaves finishes what it has and gets
// no more. Nothing is refused on the way.
func TestJoiningAndLeaving(t *testing.T) {
	sc := small(Calm())
	sc.Later = 6
	sc.Script = []Change{
		{At: 2 * Second, Do: ChangeState, From: 24, To: 30, Value: int(StateUp)},
		{At: 6 * Second, Do: ChangeState, From: 0, To: 3, Value: int(StateAbsent)},
	}
	for _, spec := range []string{"prequal", "round_robin seed=1", "prequal mode=sync", Omniscient} {
		w := world(t, sc, spec)
		var ms []*Measure
		for _, span := range [][2]int64{{0, 2 * Second}, {3 * Second, 6 * Second}, {7 * Second, 10 * Second}} {
			m, err := w.Measure(span[0], span[1])
			require.NoError(t, err)
			ms = append(ms, m)
		}
		require.NoError(t, w.Run(10*Second))
		assert.Zero(t, w.Totals.Errors)
		sum := func(m *Measure, from, to int) (n uint64) {
			for _, got := range m.ByReplica[from:to] {
				n += got
			}
			return n
		}
		assert.Zero(t, sum(ms[0], 24, 30), "%s: before they join", spec)
		assert.NotZero(t, sum(ms[1], 24, 30), "%s: then", spec)
		assert.NotZero(t, sum(ms[1], 0, 3), "%s: before they leave", spec)
		assert.Zero(t, sum(ms[2], 0, 3), "%s: then", spec)
		for i := range 3 {
			assert.Empty(t, w.replicas[i].jobs)
		}
	}
}

// Load counts the fleet that stands at the start, so that a join leaves the traffic alone.
func TestJoiningLeavesTheTrafficAlone(t *testing.T) {
	sc := small(Calm())
	sc.Later = 6
	stay, join := world(t, sc, "random seed=1"), world(t, sc, "random seed=1")
	join.SetState(25, StateUp)
	require.NoError(t, stay.Run(2*Second))
	require.NoError(t, join.Run(2*Second))
	assert.Equal(t, stay.TrafficHash(), join.TrafficHash())
	sc.Replicas, sc.Later = 24, 0
	few := world(t, sc, "random seed=1")
	require.NoError(t, few.Run(2*Second))
	assert.Equal(t, few.Totals.Arrivals, stay.Totals.Arrivals)
}

// A reload keeps what is open and what is known: the new machine decides at once by readings, and
// answers to old queries come off its counts. A restart knows nothing.
func TestReloadKeepsWhatRestartLoses(t *testing.T) {
	for _, next := range []string{"prequal", "prequal quantile=0.7"} {
		w := world(t, small(Weather()), "prequal")
		require.NoError(t, w.Run(2*Second))
		fresh, err := w.Clone()
		require.NoError(t, err)
		before := w.Totals.ByRegime[3]
		require.NoError(t, w.Reload(next, 0, len(w.clients)))
		require.NoError(t, w.Run(3*Second))
		assert.Equal(t, before, w.Totals.ByRegime[3], "%s: no decision was blind", next)
		require.NoError(t, fresh.Restart(next, 0, len(w.clients)))
		require.NoError(t, fresh.Run(3*Second))
		assert.Greater(t, fresh.Totals.ByRegime[3], before, "a restart is blind at first")
	}

	w := world(t, small(Weather()), "least_loaded")
	require.NoError(t, w.Run(2*Second))
	same, err := w.Clone()
	require.NoError(t, err)
	require.NoError(t, w.Reload("least_loaded", 4, 9))
	require.NoError(t, w.Run(3*Second))
	require.NoError(t, same.Run(3*Second))
	assert.Equal(t, same.Hash(), w.Hash(), "a reload of the same policy changes nothing")
}

// A neighbour that goes leaves what the weather has there.
func TestNoiseComesAndGoes(t *testing.T) {
	sc := small(Weather())
	sc.Weather = 300 * Millisecond
	with, without := world(t, sc, "random seed=1"), world(t, sc, "random seed=1")
	with.SetNoisy(10)
	require.NoError(t, with.Run(Second))
	require.NoError(t, without.Run(Second))
	differ := 0
	for i := range with.replicas {
		if i < 10 {
			assert.True(t, with.replicas[i].busy)
			if !without.replicas[i].busy {
				differ++
			}
		}
	}
	assert.Positive(t, differ)
	with.SetNoisy(0)
	for i := range with.replicas {
		assert.Equal(t, without.replicas[i].busy, with.replicas[i].busy)
	}
}
