package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

func best(t *testing.T, e *engine.Engine) int {
	t.Helper()
	x := e.Explain(&engine.Query{})
	require.NoError(t, x.Err)
	return int(x.Decision.Index)
}

func TestC3TheLeastScoreDecides(t *testing.T) {
	const spec = "c3 remove_rate=0 reuse=100 aversion=off"
	// q = 2 and 3: 8 * 100 against 27 * 20 ms
	e, _ := filled(t, spec, 100, engine.Reading{RIF: 1, Latency: 100 * millis}, engine.Reading{RIF: 2, Latency: 20 * millis})
	assert.Equal(t, 1, best(t, e))
	// q = 2 and 4: 8 * 100 against 64 * 20 ms
	e, cs := filled(t, spec, 100, engine.Reading{RIF: 1, Latency: 100 * millis}, engine.Reading{RIF: 3, Latency: 20 * millis})
	assert.Equal(t, 0, best(t, e))

	// R - M: what this client sees beyond what the replica reports
	require.NoError(t, e.Report(0, engine.Report{ID: cs[0].ID, Latency: 700 * millis})) // 700 - 100 + 800
	assert.Equal(t, 1, best(t, e), "1400 against 1280")
	require.NoError(t, e.Report(0, engine.Report{ID: cs[1].ID, Latency: 190 * millis})) // 190 - 20 + 1280
	assert.Equal(t, 0, best(t, e), "1400 against 1450")

	// a failure never lowers R, but may raise it
	require.NoError(t, e.Report(0, engine.Report{ID: cs[1].ID, Outcome: engine.OutcomeFailure, Latency: 0}))
	assert.Equal(t, 0, best(t, e))
	require.NoError(t, e.Report(0, engine.Report{ID: cs[0].ID, Outcome: engine.OutcomeOverloaded, Latency: 900 * millis})) // 880
	assert.Equal(t, 1, best(t, e), "1580 against 1450")
	require.NoError(t, e.Report(0, engine.Report{ID: cs[1].ID, Outcome: engine.OutcomeCancelled, Latency: 9000 * millis}))
	assert.Equal(t, 1, best(t, e), "a cancelled query says nothing")
}

func TestC3QueriesInFlightCountForAllClients(t *testing.T) {
	for spec, want := range map[string]int{"c3 clients=1": 0, "c3 clients=4": 1} {
		e, cs := filled(t, spec+" remove_rate=0 reuse=100", 100, engine.Reading{RIF: 1, Latency: 10 * millis}, engine.Reading{RIF: 4, Latency: 10 * millis})
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{}, &d))
		require.Equal(t, cs[0].ID, d.ID)
		assert.Equal(t, want, best(t, e), "one in flight: q is 2 + clients against 5")
	}
}

func TestC3AveragesReadings(t *testing.T) {
	e, cs := filled(t, "c3 remove_rate=0 alpha=0.5", 100, engine.Reading{RIF: 9, Latency: 10 * millis}, engine.Reading{RIF: 6, Latency: 10 * millis})
	assert.Equal(t, 1, best(t, e))
	_, err := e.Record(0, cs[0].ID, engine.Reading{RIF: 4, Latency: 10 * millis}) // 6.5 on average
	require.NoError(t, err)
	assert.Equal(t, 1, best(t, e))
	_, err = e.Record(0, cs[0].ID, engine.Reading{RIF: 4, Latency: 10 * millis}) // 5.25
	require.NoError(t, err)
	assert.Equal(t, 0, best(t, e))
	x := e.Explain(&engine.Query{})
	assert.Contains(t, x.Because, "RIF 5.25 on average; reports 10 ms, answers this client in no time yet")
}

func TestC3AnUnknownLatencyCountsAsTheMedian(t *testing.T) {
	// M is 20 ms for the one that does not say: q³M is 160 against 8 * 10, 27 * 20 and 27 * 30
	e, cs := filled(t, "c3 remove_rate=0", 100, engine.Reading{RIF: 1, Latency: -1}, engine.Reading{RIF: 2, Latency: 20 * millis},
		engine.Reading{RIF: 1, Latency: 10 * millis}, engine.Reading{RIF: 2, Latency: 30 * millis})
	var order []engine.ID
	for _, row := range e.Explain(&engine.Query{}).Weighed[:4] {
		order = append(order, row.ID)
	}
	assert.Equal(t, []engine.ID{cs[2].ID, cs[0].ID, cs[1].ID, cs[3].ID}, order)
}

// The greatest score leaves, though its latency is the least.
func TestC3RemovesItsOwnWorst(t *testing.T) {
	e, cs := filled(t, "c3 remove_rate=1 pool=4 reuse=9", 100, engine.Reading{RIF: 9, Latency: millis}, engine.Reading{RIF: 1, Latency: 40 * millis}, engine.Reading{RIF: 1, Latency: 50 * millis})
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{}, &d))
	assert.Equal(t, cs[1].ID, d.ID)
	es, err := e.Entries(0, nil)
	require.NoError(t, err)
	for _, x := range es {
		assert.NotEqual(t, cs[0].ID, x.ID)
	}
}
