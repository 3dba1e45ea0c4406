package policy_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

// occupy leaves queries in flight on one replica, by avoiding the others.
func occupy(t *testing.T, e *engine.Engine, cs []engine.Candidate, slot, queries int) {
	t.Helper()
	var others []engine.ID
	for i := range cs {
		if i != slot {
			others = append(others, cs[i].ID)
		}
	}
	for range queries {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Tried: others}, &d))
		require.Equal(t, cs[slot].ID, d.ID)
	}
}

// still counts decisions at one instant, each of which ends before the next.
func still(t *testing.T, e *engine.Engine, now engine.Instant, queries, n int, tried ...engine.ID) []int {
	t.Helper()
	counts := make([]int, n)
	var d engine.Decision
	for range queries {
		require.NoError(t, e.Decide(&engine.Query{Now: now, Tried: tried}, &d))
		counts[d.Index]++
		require.NoError(t, e.Report(now, engine.Report{ID: d.ID}))
	}
	return counts
}

// proportional checks counts against shares, each sized to notice a tenth.
func proportional(counts []int, shares []float64) (err error) {
	total, sum := 0.0, 0
	for i, s := range shares {
		total += s
		sum += counts[i]
	}
	for i, s := range shares {
		if e := enginetest.CheckShare(s/total, counts[i], sum); e != nil {
			err = e
		}
	}
	return err
}

func TestLeastRequestWithEqualWeightsComparesDistinctDraws(t *testing.T) {
	for spec, twin := range map[string]string{
		"least_request seed=3":                              "power_of_two seed=3",
		"least_request seed=3 choices=4":                    "power_of_two seed=3 choices=4",
		"least_request seed=3 choices=1 bias=0":             "power_of_two seed=3 choices=1",
		"least_request seed=3 slow_start=1s aggression=0.5": "power_of_two seed=3",
	} {
		e, cs := fleetOf(t, spec, 2, 2, 2, 2, 2, 2)
		f, _ := fleetOf(t, twin, 2, 2, 2, 2, 2, 2)
		for i := range 3000 {
			now := engine.Instant(i)
			q := engine.Query{Now: now}
			if i%5 == 0 {
				q.Tried = []engine.ID{cs[i%6].ID, cs[i*7%6].ID}
			}
			var a, b engine.Decision
			require.NoError(t, e.Decide(&q, &a))
			require.NoError(t, f.Decide(&q, &b))
			require.Equal(t, b, a, "%s, query %d", spec, i)
			if i%3 > 0 {
				id := cs[i*5%6].ID
				require.NoError(t, e.Report(now, engine.Report{ID: id}))
				require.NoError(t, f.Report(now, engine.Report{ID: id}))
			}
		}
	}
}

func TestLeastRequestSharesByWeightOverQueriesInFlightToTheBias(t *testing.T) {
	weights, inFlight := []engine.Weight{1, 2, 4, 4}, []int{0, 1, 5, 0}
	n := enginetest.Draws(0.04, 0.2)
	for bias, text := range map[float64]string{0: "0", 0.5: "0.5", 1: "1", 2.25: "2.25"} {
		e, cs := fleetOf(t, "least_request seed=5 bias="+text, weights...)
		var shares, byWeight []float64
		for i, k := range inFlight {
			occupy(t, e, cs, i, k)
			shares = append(shares, float64(weights[i])/math.Pow(float64(k+1), bias))
			byWeight = append(byWeight, float64(weights[i]))
		}
		counts := still(t, e, 0, n, 4)
		assert.NoError(t, proportional(counts, shares), text)
		assert.Equal(t, bias != 0, proportional(counts, byWeight) != nil, "the check notices another rule")

		counts = still(t, e, 0, n, 4, cs[3].ID)
		assert.Zero(t, counts[3])
		assert.NoError(t, proportional(counts[:3], shares[:3]), "among the rest of a retry")
	}
}

// astray is how far a run of decisions strays from the shares, at its worst.
func astray(t *testing.T, spec string, weights ...engine.Weight) (worst float64) {
	e, _ := fleetOf(t, spec, weights...)
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	counts := make([]float64, len(weights))
	for n := 1.0; n <= 5000; n++ {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		require.NoError(t, e.Report(0, engine.Report{ID: d.ID}))
		counts[d.Index]++
		for i, w := range weights {
			worst = max(worst, math.Abs(counts[i]-n*float64(w)/total))
		}
	}
	return worst
}

func TestLeastRequestWithoutBiasIsARotationByWeight(t *testing.T) {
	for _, weights := range [][]engine.Weight{{5, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8}, {100, 1, 1, 1}, {3, 2}} {
		assert.Less(t, astray(t, "least_request seed=9 bias=0", weights...), 5.0, "%v", weights)
		assert.Greater(t, astray(t, "least_request seed=9 bias=0.0001", weights...), 6.0, "a draw strays: %v", weights)
	}
}

const second = engine.Instant(engine.Second)

func TestLeastRequestRampsUpWhatJoinsOrTurnsReady(t *testing.T) {
	n := enginetest.Draws(0.03, 0.2)
	for spec, at := range map[string]map[engine.Instant]float64{
		"least_request seed=5 slow_start=10s":                         {0: 0.1, second / 2: 0.1, 5 * second: 0.5, 10 * second: 1},
		"least_request seed=5 slow_start=10s aggression=2":            {0: 0.1, 5 * second: math.Sqrt(0.5), 9 * second: math.Sqrt(0.9)},
		"least_request seed=5 slow_start=10s aggression=0.5":          {5 * second: 0.25, 1 * second: 0.1},
		"least_request seed=5 slow_start=10s min_weight_percent=40":   {second: 0.4, 6 * second: 0.6},
		"least_request seed=5 slow_start=10s bias=0 aggression=1.001": {3 * second: 0.3},
	} {
		for age, ramp := range at {
			e, cs := fleetOf(t, spec, 1, 1, 2)
			joined := 100 * second
			require.NoError(t, e.SetCandidates(joined, append(cs, engine.Candidate{ID: 77, Weight: 2})))
			counts := still(t, e, joined+age, n, 4)
			assert.NoError(t, proportional(counts, []float64{1, 1, 2, 2 * ramp}), "%s at %d", spec, age)
			if ramp < 0.7 {
				assert.Error(t, proportional(counts, []float64{1, 1, 2, 2}), "no ramp would be noticed")
			}

			ready := 300 * second
			require.NoError(t, e.SetStatus(ready, cs[0].ID, engine.StatusUnavailable))
			require.NoError(t, e.SetStatus(ready, cs[0].ID, engine.StatusReady))
			counts = still(t, e, ready+age, n, 4)
			assert.NoError(t, proportional(counts, []float64{ramp, 1, 2, 2}), "%s at %d, ready again", spec, age)
		}
	}
}

func TestLeastRequestRampsEqualWeightsToo(t *testing.T) {
	e, cs := fleetOf(t, "least_request seed=5 slow_start=10s", 1, 1, 1)
	require.NoError(t, e.SetCandidates(5*second, append(cs, engine.Candidate{ID: 77})))
	n := enginetest.Draws(0.1, 0.1)
	assert.NoError(t, proportional(still(t, e, 8*second, n, 4), []float64{0.8, 0.8, 0.8, 0.3}), "beside a fleet that still rises itself")
	assert.NoError(t, proportional(still(t, e, 11*second, n, 4), []float64{1, 1, 1, 0.6}))
	assert.NoError(t, proportional(still(t, e, 15*second, n, 4), []float64{1, 1, 1, 1}))
}

func TestLeastRequestDoesNotRampAFleetThatStartsTogether(t *testing.T) {
	e, _ := fleetOf(t, "least_request seed=5 slow_start=10s", 1, 1, 8)
	assert.NoError(t, proportional(still(t, e, 1, enginetest.Draws(0.1, 0.1), 3), []float64{1, 1, 8}))
}

// A retry that may go only where hardly any share is still goes there.
func TestLeastRequestFindsTheOnlyOneLeft(t *testing.T) {
	e, cs := fleetOf(t, "least_request seed=5", 4_000_000_000, 1, 4_000_000_000, 2)
	counts := still(t, e, 0, enginetest.Draws(0.3, 0.1), 4, cs[0].ID, cs[2].ID)
	assert.NoError(t, proportional([]int{counts[1], counts[3]}, []float64{1, 2}))
	occupy(t, e, cs, 1, 100)
}

func TestLeastRequestKeepsTheLawsWithARamp(t *testing.T) {
	for _, spec := range []string{"least_request seed=7 slow_start=20us", "least_request seed=7 slow_start=2ms bias=0 aggression=3 choices=5"} {
		enginetest.TestPolicy(t, enginetest.Native(policy.Parse, spec))
	}
}

func TestLeastRequestRefusesWordsThatAreNoRow(t *testing.T) {
	e, cs := fleetOf(t, "least_request seed=5", 1, 2, 3, 4)
	occupy(t, e, cs, 3, 6)
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, e.Restore(block))
	words := len(block)/8 - 3*len(cs) // where the slots begin
	for name, change := range map[string]func(b []byte){
		"a place twice":          func(b []byte) { copy(b[8*(words+1):], b[8*(words+4):8*(words+5)]) },
		"no place":               func(b []byte) { binary.LittleEndian.PutUint64(b[8*(words+1):], 0) },
		"a place beyond the row": func(b []byte) { binary.LittleEndian.PutUint64(b[8*(words+1):], 5) },
		"a level out of order":   func(b []byte) { binary.LittleEndian.PutUint64(b[8*(words+9):], 0) },
		"ready in the future":    func(b []byte) { binary.LittleEndian.PutUint64(b[8*(words+2):], 1) },
	} {
		bad := append([]byte(nil), block...)
		change(bad)
		assert.ErrorIs(t, e.Restore(bad), engine.ErrBlock, name)
	}
}

func TestLeastRequestSettlesASteadyStateWithoutAllocating(t *testing.T) {
	e, cs := fleetOf(t, "least_request seed=5 slow_start=1s", 1, 2, 3, 4, 5, 6)
	require.NoError(t, e.SetStatus(1, cs[2].ID, engine.StatusDraining))
	require.NoError(t, e.SetStatus(2, cs[2].ID, engine.StatusReady))
	var d engine.Decision
	i := 0
	assert.Zero(t, testing.AllocsPerRun(3000, func() {
		i++
		_ = e.Decide(&engine.Query{Now: engine.Instant(i * 1000)}, &d)
		if i%3 != 0 {
			_ = e.Report(0, engine.Report{ID: d.ID})
		}
	}))
}

// With unequal weights one replica is drawn and none is compared: nobody lost to a busier one.
func TestLeastRequestExplainsADrawAsADraw(t *testing.T) {
	e, cs := fleetOf(t, "least_request seed=3", 1, 9, 9)
	occupy(t, e, cs, 1, 3)
	for range 50 {
		x := e.Explain(&engine.Query{Now: 9e9})
		require.NoError(t, x.Err)
		assert.Empty(t, x.Unit)
		for _, w := range x.Weighed {
			assert.NotEqual(t, engine.VerdictLost, w.Verdict, "%+v", w)
			assert.False(t, w.Compared)
		}
		assert.Contains(t, x.Because, "in flight")
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Now: 9e9}, &d))
		assert.Equal(t, d, x.Decision)
	}
}

// Those that came together are not ramped, not even at the beginning of time.
func TestLeastRequestDecidesAlikeAtTheBeginningOfTime(t *testing.T) {
	var decided [2][]uint32
	for i, origin := range []engine.Instant{0, -1 << 63} {
		p, err := policy.Parse("least_request seed=3 slow_start=1s")
		require.NoError(t, err)
		e := engine.New(p, engine.Config{})
		cs := weighedDozen(12)
		require.NoError(t, e.SetCandidates(origin, cs))
		for k := range 200 {
			var d engine.Decision
			require.NoError(t, e.Decide(&engine.Query{Now: origin + engine.Instant(k)}, &d))
			decided[i] = append(decided[i], d.Index)
		}
	}
	assert.Equal(t, decided[0], decided[1])
}
