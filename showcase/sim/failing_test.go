package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Queries that fail are counted once, whatever else ends queries at the same time.
func TestNothingIsLostWhereQueriesFail(t *testing.T) {
	sc := small(Neighbours())
	sc.Load, sc.Deadline = 18_000, 400*Millisecond
	w := world(t, sc, "random seed=1")
	for i := range 10 {
		w.SetFailing(3*i, 1000*(i+1))
	}
	require.NoError(t, w.Run(2*Second))
	w.SetState(0, StateDead)
	require.NoError(t, w.Run(3*Second))
	s := w.Totals
	assert.Equal(t, s.Arrivals, s.Completed+s.Errors+uint64(w.InFlight()))
	assert.Equal(t, s.Errors, s.Timeouts+s.Refused+s.Failed+s.Unplaced)
	for _, n := range []uint64{s.Completed, s.Timeouts, s.Refused, s.Failed} {
		assert.NotZero(t, n, "the test must meet every end: %+v", s)
	}
	for i := range w.replicas {
		r := &w.replicas[i]
		area, _ := r.account(w.now)
		stays := r.stay
		for _, j := range r.jobs {
			stays += w.now - int64(w.queries[j.id].met.At)
		}
		assert.Equal(t, area, stays, Name(i))
	}
}

// A failing replica fails its share, fast, until it is repaired; the others fail nothing.
func TestFailingFollowsItsShare(t *testing.T) {
	for _, share := range []int{1000, 5000, 10_000} {
		w := world(t, small(Calm()), "round_robin seed=1")
		w.SetFailing(4, share)
		require.NoError(t, w.Run(20*Second))
		w.SetFailing(4, 0)
		got, served := float64(w.Totals.Failed), float64(w.replicas[4].finished)
		// About 1,900 queries: a deviation of at most 1.2 points, and a tenth of that at most
		// in flight at the end.
		assert.InDelta(t, float64(share)/whole, got/served, 0.05)
		require.NoError(t, w.Run(21*Second))
		before := w.Totals.Failed
		require.NoError(t, w.Run(25*Second))
		assert.Equal(t, before, w.Totals.Failed, "repaired")
		assert.Equal(t, w.Totals.Errors, w.Totals.Failed)
	}
}

// What fails leaves arrivals, work and neighbours alone, and a share of nothing changes nothing.
func TestFailingNeverChangesTheTraffic(t *testing.T) {
	plain, none, some := world(t, small(Weather()), "prequal"), world(t, small(Weather()), "prequal"), world(t, small(Weather()), "prequal")
	none.SetFailing(3, -1)
	some.SetFailing(3, 20_000)
	for _, w := range []*World{plain, none, some} {
		require.NoError(t, w.Run(3*Second))
		assert.Equal(t, plain.TrafficHash(), w.TrafficHash())
	}
	assert.Equal(t, plain.Hash(), none.Hash())
	assert.NotEqual(t, plain.Hash(), some.Hash())
	assert.NotZero(t, some.Totals.Failed)
	for i := range plain.replicas {
		assert.Equal(t, plain.replicas[i].busy, some.replicas[i].busy)
	}
}

// An error is fast, and does not make the replica say that it is: RIF stays low, and no latency
// that it reports falls.
func TestFailingIsFastAndSaysNothingOfLatency(t *testing.T) {
	sc := one(3000)
	w := world(t, sc, "random seed=1")
	require.NoError(t, w.Run(20*Second))
	before := w.Replicas(nil)[0].Latency
	w.SetFailing(0, 10_000)
	require.NoError(t, w.Run(21*Second)) // what it had is done
	r := &w.replicas[0]
	stay, finished := r.stay, r.finished
	require.NoError(t, w.Run(25*Second))
	mean := (r.stay - stay) / int64(r.finished-finished)
	assert.Greater(t, mean, leastFailure)
	assert.Less(t, mean, mostFailure)
	assert.GreaterOrEqual(t, w.Replicas(nil)[0].Latency, before/2)
}

func TestFaultAllocatesNothing(t *testing.T) {
	r := &replica{failing: 5000, faults: newStream(1, streamFaults, 0)}
	q := &query{}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.fault(q) }))
}
