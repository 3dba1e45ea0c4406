package showcase

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/showcase/sim"
)

func TestWhy(t *testing.T) {
	say := func(e engine.Decision) string {
		return Why(&DecisionFrame{Serial: 1, Client: 4, Replica: 12, Decision: e}, "power_of_two seed=1")
	}
	at := engine.Duration(41 * sim.Millisecond)
	for want, e := range map[string]engine.Decision{
		"Client 4 chose r12: it answers fastest (41 ms) of the 13 cold replicas that it knows (RIF 9 or less).":                        {Regime: engine.RegimeCold, Latency: at, Cold: 13, Offered: 15, Threshold: 9},
		"Client 4 chose r12: it answers fastest (latency unknown) of the 2 cold replicas that it knows (no RIF counts as hot yet).":    {Regime: engine.RegimeCold, Latency: -1, Cold: 2, Offered: 2, Threshold: engine.NoThreshold},
		"Client 4 chose r12: the only cold one (RIF 9 or less) of 3 replicas that it knows.":                                           {Regime: engine.RegimeCold, Latency: at, Cold: 1, Offered: 3, Threshold: 9},
		"All 16 replicas that client 4 knows are hot (RIF above 9), so it stopped chasing speed and chose the emptiest, r12 (RIF 10).": {Regime: engine.RegimeHot, Offered: 16, Hot: 16, Threshold: 9, RIF: 10},
		"Client 4 has 1 reading in its pool, too few to compare, so it chose r12 at random.":                                           {Regime: engine.RegimeFallback, Cause: engine.CauseThin, Offered: 1},
		"Client 4 has no reading in its pool, too few to compare, so it chose r12 at random.":                                          {Regime: engine.RegimeFallback, Cause: engine.CauseEmpty},
		"The guest failed, so the host decided for client 4: r12 at random.":                                                           {Regime: engine.RegimeFallback, Cause: engine.CauseTrap},
		"Power of two asks no replica how it is: client 4 sent this query to r12 whatever its state.":                                  {Regime: engine.RegimeDirect},
	} {
		assert.Equal(t, want, say(e))
	}
	middle := DecisionFrame{Serial: 1, Client: 4, Replica: 12, Rows: []Row{{Replica: 12, Latency: -1}},
		Decision: engine.Decision{Regime: engine.RegimeCold, Latency: at, Cold: 2, Threshold: 9}}
	assert.Equal(t, "Client 4 chose r12: its latency is unknown and counts as the middle one (41 ms), and no other of the 2 cold replicas that it knows is faster (RIF 9 or less).",
		Why(&middle, "prequal"))
	assert.Equal(t, "Waiting for client 4's first decision.", Why(&DecisionFrame{Client: 4, Replica: -1}, "prequal"))
}

func TestCompare(t *testing.T) {
	a := WorldFrame{Totals: sim.Totals{Arrivals: 12_345, Completed: 12_300}, Quantiles: [4]int64{0, 0, 205 * sim.Millisecond}}
	b := WorldFrame{Totals: sim.Totals{Arrivals: 12_345, Completed: 12_000, Errors: 1_234_567}, Quantiles: [4]int64{0, 0, -1}}
	assert.Equal(t, "The same 12,345 queries to both. Prequal: 99 in 100 within 205 ms, none lost. "+
		"Random: at least 1 query in 100 times out, 1,234,567 lost so far.", Compare(&a, &b, "prequal seed=7", "random seed=7"))
	stuck := WorldFrame{Totals: sim.Totals{Arrivals: 9, Errors: 3}, Quantiles: [4]int64{-1, -1, -1, -1}}
	assert.Contains(t, Compare(&a, &stuck, "prequal", "random"), "Random: at least 1 query in 100 times out, 3 lost so far.")
	assert.Contains(t, Compare(&a, &WorldFrame{Totals: sim.Totals{Completed: 1}}, "prequal", "random"), "Random has answered none lately, none lost.")
	assert.Equal(t, "The same queries to both; the first is yet to come.", Compare(&WorldFrame{}, &WorldFrame{}, "prequal", "random"))
	assert.Contains(t, Compare(&a, &WorldFrame{}, "random", "random"), "Random (B) has answered none yet.")
}

// Rows come in the order of the rule, and each has the fate that the engine gave it.
func TestExplain(t *testing.T) {
	sc := sim.Calm()
	sc.Replicas, sc.Clients = 20, 2
	w, err := sim.NewWorld(sc, "prequal seed=7 quantile=0.5", sim.Maker{Machine: sim.Native})
	if !assert.NoError(t, err) {
		return
	}
	w.Focus(1)
	var regimes [engine.Regimes]int
	var verdicts [6]int
	last := uint64(0)
	for at := int64(0); at < 3*sim.Second; at += sim.Millisecond {
		switch at {
		case sim.Second:
			w.SetState(0, sim.StateDraining)
			w.SetState(1, sim.StateDraining)
		case 2 * sim.Second:
			for i := range 14 {
				w.SetState(i, sim.StateDead)
			}
		}
		if !assert.NoError(t, w.Run(at)) {
			return
		}
		e := &w.Explained
		if e.Serial == last {
			continue
		}
		last = e.Serial
		d := explain(w, e, false)
		regimes[e.Decision.Regime]++
		assert.Len(t, d.Rows, len(e.Before))
		offered, chosen := 0, 0
		for i, r := range d.Rows {
			verdicts[r.Verdict]++
			if r.Verdict < VerdictRemovedWorst {
				offered++
			}
			if r.Verdict == VerdictChosen {
				chosen++
				assert.Equal(t, d.Replica, r.Replica)
				assert.Equal(t, int64(e.Decision.Latency), r.rank)
				assert.Zero(t, i, "the chosen one stands first")
			}
		}
		informed := e.Decision.Regime == engine.RegimeCold || e.Decision.Regime == engine.RegimeHot
		assert.Equal(t, informed, chosen == 1)
		assert.EqualValues(t, e.Decision.Offered, offered, "%+v", d.Rows)
	}
	for _, r := range []engine.Regime{engine.RegimeCold, engine.RegimeHot, engine.RegimeFallback} {
		assert.NotZero(t, regimes[r], r)
	}
	for v, n := range verdicts {
		assert.NotZero(t, n, "verdict %d was never given: %v", v, verdicts)
	}
}
