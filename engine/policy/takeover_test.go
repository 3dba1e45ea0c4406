package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A machine whose queries in flight were set from outside is in a state that its policy could have
// made: its block goes into another one.
func TestTheBlockAfterATakeoverRestores(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			for decided := range 12 {
				takeover(t, name, decided, nil)
				takeover(t, name, decided, []engine.InFlight{{ID: 2, Queries: 5}, {ID: 4, Queries: 1}})
			}
		})
	}
}

// takeover sets the queries in flight after so many decisions, and then goes on beside a machine that
// has taken the block.
func takeover(t *testing.T, name string, decided int, open []engine.InFlight) {
	t.Helper()
	machine := func() *engine.Engine {
		p, err := policy.Parse(name)
		require.NoError(t, err)
		m := engine.New(p, engine.Config{})
		require.NoError(t, m.SetCandidates(1, []engine.Candidate{{ID: 1, Weight: 3}, {ID: 2, Weight: 2}, {ID: 3}, {ID: 4, Weight: 9}}))
		return m
	}
	a, b := machine(), machine()
	for id := range engine.ID(4) {
		_, err := a.Record(1, id+1, engine.Reading{RIF: 4 + uint32(id), Latency: 2900 + 200*engine.Duration(id)})
		require.NoError(t, err)
	}
	var d, e engine.Decision
	for i := range decided {
		require.NoError(t, a.Decide(&engine.Query{Now: engine.Instant(i), Key: engine.Key(i)}, &d))
	}
	require.NoError(t, a.SetInFlight(open))
	block, err := a.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, b.Restore(block))
	for i := range 20 {
		q := engine.Query{Now: engine.Instant(100 + i), Key: engine.Key(i)}
		require.NoError(t, a.Decide(&q, &d))
		require.NoError(t, b.Decide(&q, &e))
		require.Equal(t, d, e)
	}
}
