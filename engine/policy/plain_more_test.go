package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Among equals the turn goes round: nobody is served twice before everybody was.
func TestLeastLoadedTakesEqualsInTurn(t *testing.T) {
	e, _ := machine(t, "least_loaded seed=9", 9)
	for i, c := range shares(t, e, 9*20, 9, true) {
		assert.Equal(t, 20, c, i)
	}
	x := e.Explain(&engine.Query{Now: 1000})
	assert.Equal(t, "queries in flight", x.Unit)
	assert.Equal(t, 8, x.Ties)
	assert.NotEmpty(t, x.TieBreak)
}

// However many are drawn, they are distinct, and every one is as likely as every other.
func TestPowerOfTwoDrawsAreDistinct(t *testing.T) {
	for choices, bound := range map[int]float64{2: 25.7, 3: 25.7, 4: 25.7, 5: 25.7, 6: 25.7, policy.MaxChoices: 46.0} {
		e, cs := machine(t, fmt.Sprint("power_of_two seed=5 choices=", choices), max(6, choices+1))
		drawn := make([]int, len(cs))
		for i := range 6000 {
			q := &engine.Query{Now: engine.Instant(i)}
			seen := map[engine.ID]bool{}
			for _, w := range e.Explain(q).Weighed[:choices] { // the drawn ones come first
				require.NotEqual(t, engine.VerdictUnweighed, w.Verdict)
				require.False(t, seen[w.ID], "choices=%d: drawn twice", choices)
				seen[w.ID] = true
				drawn[w.Slot]++
			}
			var d engine.Decision
			require.NoError(t, e.Decide(q, &d))
		}
		even(t, drawn, bound) // 5 degrees of freedom, or 16
	}
}

// One choice is none: whoever is drawn decides, however loaded.
func TestPowerOfTwoWithOneChoiceLooksAtNoLoad(t *testing.T) {
	e, cs := machine(t, "power_of_two seed=5 choices=1", 4)
	require.NoError(t, e.SetInFlight([]engine.InFlight{{ID: cs[0].ID, Queries: 1000}}))
	even(t, shares(t, e, 10000, 4, true), 21.1) // 3 degrees of freedom
}
