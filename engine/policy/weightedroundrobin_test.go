package policy_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

const aSecond = engine.Instant(engine.Second)

// reported is a fleet of n replicas named a, b, c, and a way to have one report.
func reported(tb testing.TB, spec string, n int) (*engine.Engine, func(now engine.Instant, i int, l engine.LoadReport)) {
	tb.Helper()
	e, cs := fleetOf(tb, spec, make([]engine.Weight, n)...)
	return e, func(now engine.Instant, i int, l engine.LoadReport) {
		require.NoError(tb, e.RecordLoad(now, cs[i].ID, l))
	}
}

// turns counts decisions by candidate at one instant.
func turns(tb testing.TB, e *engine.Engine, now engine.Instant, queries, n int) []int {
	tb.Helper()
	counts := make([]int, n)
	var d engine.Decision
	for range queries {
		require.NoError(tb, e.Decide(&engine.Query{Now: now}, &d))
		counts[d.Index]++
	}
	return counts
}

// about allows each count one turn more or less: how full a turn is when counting begins and ends.
func about(tb testing.TB, want, got []int, msg ...any) {
	tb.Helper()
	for i := range want {
		assert.InDelta(tb, want[i], got[i], 1.001, "%v: want %v, got %v", msg, want, got)
	}
}

func TestReportsGiveWeightsAsA58Says(t *testing.T) {
	for name, c := range map[string]struct {
		a, b engine.LoadReport
		want []int
	}{
		"the same queries at half the utilization": {engine.LoadReport{Utilization: 2500, QPS: 100000}, engine.LoadReport{Utilization: 5000, QPS: 100000}, []int{400, 200}},
		"three times the queries":                  {engine.LoadReport{Utilization: 9000, QPS: 300}, engine.LoadReport{Utilization: 9000, QPS: 100}, []int{450, 150}},
		"twice its capacity":                       {engine.LoadReport{Utilization: 20000, QPS: 100}, engine.LoadReport{Utilization: 10000, QPS: 100}, []int{200, 400}},
		"a quarter of all failed":                  {engine.LoadReport{Utilization: 5000, QPS: 80000, EPS: 20000}, engine.LoadReport{Utilization: 5000, QPS: 80000}, []int{240, 360}},
		"more failures than queries count as all":  {engine.LoadReport{Utilization: 5000, QPS: 80000, EPS: 1 << 31}, engine.LoadReport{Utilization: 5000, QPS: 80000}, []int{150, 450}},
		"the extremes of the formats":              {engine.LoadReport{Utilization: 1<<32 - 1, QPS: 1<<32 - 1, EPS: 1<<32 - 1}, engine.LoadReport{Utilization: 1<<32 - 1, QPS: 1<<32 - 1}, []int{300, 300}},
	} {
		e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 2)
		report(0, 0, c.a)
		report(0, 1, c.b)
		about(t, c.want, turns(t, e, 0, 600, 2), name)
	}
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0 error_utilization_penalty=2", 2)
	report(0, 0, engine.LoadReport{Utilization: 5000, QPS: 80000, EPS: 20000})
	report(0, 1, engine.LoadReport{Utilization: 5000, QPS: 80000})
	about(t, []int{200, 400}, turns(t, e, 0, 600, 2), "a heavier penalty")
}

func TestAReportWithoutQueriesOrUtilizationIsPassedOver(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 2)
	report(0, 0, engine.LoadReport{Utilization: 5000, QPS: 300})
	report(0, 1, engine.LoadReport{Utilization: 5000, QPS: 100})
	report(0, 0, engine.LoadReport{Utilization: 5000})
	report(0, 1, engine.LoadReport{QPS: 7})
	about(t, []int{450, 150}, turns(t, e, 0, 600, 2))
}

func TestAReplicaWithoutAWeightHasTheMean(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 3)
	report(0, 0, engine.LoadReport{Utilization: 5000, QPS: 300})
	report(0, 1, engine.LoadReport{Utilization: 5000, QPS: 100})
	about(t, []int{300, 100, 200}, turns(t, e, 0, 600, 3))
}

func TestFewerThanTwoWeightsAreAPlainRotation(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 4)
	rotates := func() {
		t.Helper()
		order := indices(t, e, 8)
		for i := range 7 {
			require.Equal(t, (order[i]+1)%4, order[i+1], order)
		}
	}
	rotates()
	report(0, 2, engine.LoadReport{Utilization: 100, QPS: 90000})
	require.NoError(t, e.SetStatus(0, engine.IDOf("d"), engine.StatusDraining))
	require.NoError(t, e.SetStatus(0, engine.IDOf("d"), engine.StatusReady))
	rotates()
}

func TestWeightsWaitForTheBlackoutAndTheUpdate(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3", 2)
	even := func(now engine.Instant) {
		t.Helper()
		assert.Equal(t, []int{200, 200}, turns(t, e, now, 400, 2))
	}
	uneven := func(now engine.Instant, want ...int) {
		t.Helper()
		about(t, want, turns(t, e, now, 400, 2))
	}
	say := func(now engine.Instant, a, b uint32) {
		report(now, 0, engine.LoadReport{Utilization: 5000, QPS: a})
		report(now, 1, engine.LoadReport{Utilization: 5000, QPS: b})
	}
	even(0)
	say(aSecond, 300, 100)
	even(11*aSecond - 1) // ten seconds less a nanosecond of reports
	even(12*aSecond - 2) // the weights of a moment ago are in force for a second
	uneven(12*aSecond-1, 300, 100)
	say(12*aSecond, 100, 300)
	uneven(13*aSecond-2, 300, 100)
	uneven(13*aSecond-1, 100, 300)

	uneven(192*aSecond-1, 100, 300) // the last report is three minutes less a nanosecond old
	even(193 * aSecond)
	say(194*aSecond, 300, 100)
	even(195 * aSecond) // after a gap there is a blackout again
	uneven(204*aSecond, 300, 100)
	require.NoError(t, e.SetStatus(204*aSecond, engine.IDOf("a"), engine.StatusUnavailable))
	report(204*aSecond, 0, engine.LoadReport{Utilization: 5000, QPS: 300}) // not eligible: not kept
	require.NoError(t, e.SetStatus(204*aSecond, engine.IDOf("a"), engine.StatusReady))
	even(205 * aSecond) // and after an absence
	say(206*aSecond, 300, 100)
	even(215 * aSecond)
	uneven(216*aSecond, 300, 100)
}

func TestAChangeOfTheFleetPutsWeightsInForceAtOnce(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 3)
	turns(t, e, 0, 1, 3)
	report(1, 0, engine.LoadReport{Utilization: 5000, QPS: 300})
	report(1, 1, engine.LoadReport{Utilization: 5000, QPS: 100})
	require.NoError(t, e.SetStatus(2, engine.IDOf("c"), engine.StatusDraining))
	about(t, []int{300, 100, 0}, turns(t, e, 3, 400, 3))
}

func TestNoWeightIsOverTenMeansOrUnderAHundredthOfOne(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 22)
	for i := range 20 {
		report(0, i, engine.LoadReport{Utilization: 10000, QPS: 100})
	}
	report(0, 20, engine.LoadReport{Utilization: 10000, QPS: 1<<32 - 1}) // the mean is a 22nd of it
	report(0, 21, engine.LoadReport{Utilization: 10000, QPS: 1})
	counts := turns(t, e, 0, 1000+21, 22) // a thousand turns of the largest, one of each of the rest
	assert.InDelta(t, 1000, counts[20], 12)
	for i, c := range counts {
		if i != 20 {
			assert.InDelta(t, 1, c, 1, i)
		}
	}
}

// Counts follow the weights at all times, not only in the long run.
func TestNoReplicaIsMoreThanATurnOffItsShare(t *testing.T) {
	weights := []uint32{500, 100, 300, 250, 120, 480, 333}
	e, report := reported(t, "weighted_round_robin seed=9 blackout_period=0", len(weights))
	for i, w := range weights {
		report(0, i, engine.LoadReport{Utilization: 7000, QPS: w})
	}
	law := func(next func() int) error {
		counts := make([]int, len(weights))
		for n := range 20000 {
			counts[next()]++
			for i, w := range weights {
				share := float64(w) / 2083
				if off := float64(counts[i]) - share*float64(n+1); off > 4 || off < -4 {
					return fmt.Errorf("after %d decisions candidate %d is %.1f turns off", n+1, i, off)
				}
			}
		}
		return nil
	}
	require.NoError(t, law(func() int { return indices(t, e, 1)[0] }))
	random, _ := fleetOf(t, "weighted_random seed=9", 500, 100, 300, 250, 120, 480, 333)
	assert.Error(t, law(func() int { return indices(t, random, 1)[0] }), "draws scatter more, and the law must notice")
}

// Each client starts at a replica of its own, and at places of its own in the turns of each.
func TestReportedRotationsStartApart(t *testing.T) {
	n := enginetest.Draws(0.1, 0.1)
	var counts [10]int
	orders := map[string]bool{}
	for seed := range n {
		e, report := reported(t, fmt.Sprint("weighted_round_robin blackout_period=0 seed=", seed), 10)
		for i := range 10 {
			report(0, i, engine.LoadReport{Utilization: 5000, QPS: 100})
		}
		counts[indices(t, e, 1)[0]]++
		if seed < 100 {
			e, report := reported(t, fmt.Sprint("weighted_round_robin blackout_period=0 seed=", seed), 10)
			for i := range 10 {
				report(0, i, engine.LoadReport{Utilization: 5000, QPS: uint32(100 + 90*i)})
			}
			orders[fmt.Sprint(indices(t, e, 20))] = true
		}
	}
	for i, c := range counts {
		require.NoError(t, enginetest.CheckShare(0.1, c, n), i)
	}
	assert.Greater(t, len(orders), 90)
}

func TestARetryGoesOnInTheRotationWithoutTheAvoided(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 3)
	for i, qps := range []uint32{1000000, 100, 300} {
		report(0, i, engine.LoadReport{Utilization: 5000, QPS: qps})
	}
	counts := make([]int, 3)
	var d engine.Decision
	for range 400 {
		require.NoError(t, e.Decide(&engine.Query{Tried: []engine.ID{engine.IDOf("a")}}, &d))
		counts[d.Index]++
	}
	about(t, []int{0, 200, 200}, counts, "both are raised to a hundredth of the mean")
}

// D1 and D5: statuses and reports change between any two calls, and nothing is allocated.
func TestAReportedRotationIsSafeAndAllocatesNothing(t *testing.T) {
	e, cs := oneToFour(t, "weighted_round_robin seed=7 blackout_period=0", 64)
	var d engine.Decision
	i, now := 0, engine.Instant(0)
	q, retry := engine.Query{}, engine.Query{Tried: []engine.ID{cs[1].ID, cs[32].ID}}
	step := func() {
		i++
		now += aSecond / 50
		q.Now, retry.Now = now, now
		_ = e.RecordLoad(now, cs[i*29%64].ID, engine.LoadReport{Utilization: uint32(i%9) * 1000, QPS: uint32(i * 7919 % 4000), EPS: uint32(i % 50)})
		_ = e.Decide(&q, &d)
		_ = e.Decide(&retry, &d)
	}
	assert.Zero(t, testing.AllocsPerRun(2000, step))
	for range 20000 {
		require.NoError(t, e.SetStatus(now, cs[i*13%64].ID, engine.Status(i%3)))
		step()
	}
}

func TestTheLawsHoldWhileWeightsComeAndGo(t *testing.T) {
	enginetest.TestPolicy(t, enginetest.Native(policy.Parse, "weighted_round_robin seed=7 blackout_period=0 weight_expiration_period=300us"))
}

func TestAReportedRotationRefusesStatesItCouldNotHaveMade(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3", 3)
	require.NoError(t, e.SetStatus(0, engine.IDOf("c"), engine.StatusDraining))
	report(5, 0, engine.LoadReport{Utilization: 5000, QPS: 300})
	turns(t, e, 9, 10, 3)
	block, err := e.Snapshot(nil)
	require.NoError(t, err)
	const fixed, first, stride = 8, 12, 5 // words: the head, four of ours, then five per slot
	for name, change := range map[string]func(b []uint64){
		"a turn out of the fleet":       func(b []uint64) { b[fixed] = 1 << 40 },
		"no such flag":                  func(b []uint64) { b[fixed+2] = 2 },
		"weighed in the future":         func(b []uint64) { b[fixed+3] = 10 },
		"updated in the future":         func(b []uint64) { b[first+3] = 10 },
		"updated before it began":       func(b []uint64) { b[first+3] = 4 },
		"a weight out of reach":         func(b []uint64) { b[first+1] = 1<<56 + 1 },
		"times without a weight":        func(b []uint64) { b[first+1] = 0 },
		"a weight of the drained":       func(b []uint64) { b[first+2*stride+1] = 7 },
		"more than a whole turn saved":  func(b []uint64) { b[first+4] |= 1 << 30 },
		"more than a turn in force":     func(b []uint64) { b[first+4] = 1<<62 + 1<<32 },
		"nothing in force, some saved":  func(b []uint64) { b[first+4] = 1 },
		"nothing in force, and weighed": func(b []uint64) { b[first+4] = 0 },
	} {
		words := make([]uint64, len(block)/8)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(block[8*i:])
		}
		was := slices.Clone(words)
		change(words)
		require.NotEqual(t, was, words, name)
		var changed []byte
		for _, w := range words {
			changed = binary.LittleEndian.AppendUint64(changed, w)
		}
		assert.ErrorIs(t, e.Restore(changed), engine.ErrBlock, name)
	}
	assert.NoError(t, e.Restore(block))
	for _, spec := range []string{"weighted_round_robin seed=7", "weighted_round_robin seed=7 blackout_period=0 weight_expiration_period=300us"} {
		servesOrRefuses(t, spec)
		theTablesFollowTheFleet(t, spec)
	}
}

func TestAReportedRotationSaysWhoseTurnComesNext(t *testing.T) {
	e, report := reported(t, "weighted_round_robin seed=3 blackout_period=0", 3)
	x := e.Explain(&engine.Query{})
	assert.Equal(t, "is next in a plain rotation: 0 of 3 weights usable, and it takes two", x.Because)
	report(0, 0, engine.LoadReport{Utilization: 5000, QPS: 300})
	report(0, 1, engine.LoadReport{Utilization: 5000, QPS: 100})
	for range 50 {
		x = e.Explain(&engine.Query{})
		require.NoError(t, x.Err)
		assert.Equal(t, "is the next whose part of a turn has come to a whole one", x.Because)
		assert.Contains(t, x.Notes, "2 of 3 weights are reported and usable; the others have their mean")
		least, chosen := ^uint64(0), ^uint64(0)
		for _, w := range x.Weighed {
			least = min(least, w.Load)
			if w.Verdict == engine.VerdictChosen {
				chosen = w.Load
			}
			assert.Equal(t, map[engine.ID]uint32{engine.IDOf("a"): 10000, engine.IDOf("b"): 3333, engine.IDOf("c"): 6666}[w.ID], w.Weight)
		}
		require.Equal(t, least, chosen, "the fewest visits decide")
		indices(t, e, 1)
	}
}
