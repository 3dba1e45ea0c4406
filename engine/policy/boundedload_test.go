package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// bounded is a fleet of given weights with given counts in flight; IDs are 100 and up.
func bounded(tb testing.TB, spec string, weights []engine.Weight, loads ...uint32) *engine.Engine {
	e := weightedFleet(tb, spec, weights...)
	setInFlight(tb, e, len(weights), func(i int) uint32 { return loads[i] })
	return e
}

// keyOf finds a key that ranks the candidates in an order; fewer candidates than weights will do.
func keyOf(tb testing.TB, weights []engine.Weight, order ...engine.ID) engine.Key {
	cs := numbered(weights)
	for key := engine.Key(1); key < 1_000_000; key++ {
		if slices.Equal(weightedOrder(cs, key)[:len(order)], order) {
			return key
		}
	}
	tb.Fatal("no such key")
	return 0
}

func TestTheBestRankedWithRoomDecides(t *testing.T) {
	even, uneven := []engine.Weight{1, 1, 1}, []engine.Weight{1, 2, 3}
	for name, c := range map[string]struct {
		spec    string
		weights []engine.Weight
		loads   []uint32
		want    engine.ID
		regime  engine.Regime
	}{
		"idle":                        {"bounded_load", even, []uint32{0, 0, 0}, 100, engine.RegimeDirect},
		"one below its capacity of 3": {"bounded_load", even, []uint32{2, 2, 1}, 100, engine.RegimeDirect},
		"at its capacity of 3":        {"bounded_load", even, []uint32{3, 1, 1}, 101, engine.RegimeSpill},
		"past two full ones":          {"bounded_load factor=1", even, []uint32{4, 4, 1}, 102, engine.RegimeSpill},
		"a capacity is rounded up":    {"bounded_load factor=1", even, []uint32{1, 1, 1}, 100, engine.RegimeDirect},
		"an idle fleet is never full": {"bounded_load factor=1", even, []uint32{0, 0, 0}, 100, engine.RegimeDirect},
		"the fourth decimal counts":   {"bounded_load factor=1.0001", even, []uint32{6666, 6666, 6666}, 100, engine.RegimeDirect}, // 6667.3
		"a high factor":               {"bounded_load factor=3", even, []uint32{50, 0, 0}, 100, engine.RegimeDirect},
		"weights, at 1.5*13/6":        {"bounded_load", uneven, []uint32{4, 4, 4}, 101, engine.RegimeSpill},
		"weights, at 2*1.5*21/6":      {"bounded_load", uneven, []uint32{9, 11, 0}, 102, engine.RegimeSpill},
	} {
		e := bounded(t, c.spec, c.weights, c.loads...)
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Key: keyOf(t, c.weights, 100, 101, 102)}, &d), name)
		assert.Equal(t, c.want, d.ID, name)
		assert.Equal(t, c.regime, d.Regime, name)
	}
}

func TestTheTightestFactorFillsExactlyInProportionToWeight(t *testing.T) {
	weights := []engine.Weight{1, 2, 3, 4, 7}
	e := weightedFleet(t, "bounded_load factor=1", weights...)
	var d engine.Decision
	for key := range engine.Key(17 * 20) { // one hot key first, then all kinds
		require.NoError(t, e.Decide(&engine.Query{Key: max(1, key-100)}, &d))
	}
	for i, w := range weights {
		assert.Equal(t, 20*uint32(w), e.InFlight(engine.ID(100+i)))
	}
}

// A key that is all of the traffic may fill each replica to factor times its share, and no more.
func TestAHotKeyIsHeldToTheFactor(t *testing.T) {
	const n, queries = 10, 2000
	most := func(spec string) (most uint32) {
		e, cs := machine(t, spec, n)
		var d engine.Decision
		for i := range uint32(queries) {
			require.NoError(t, e.Decide(&engine.Query{Key: 5}, &d))
			most = max(most, e.InFlight(d.ID))
			if spec != "weighted_rendezvous" {
				require.LessOrEqual(t, e.InFlight(d.ID), (5*(i+1)+4*n-1)/(4*n), "1.25 times its share, rounded up")
			}
		}
		require.NotZero(t, e.InFlight(cs[0].ID)+e.InFlight(cs[1].ID)+e.InFlight(cs[2].ID))
		return most
	}
	assert.Equal(t, uint32(250), most("bounded_load factor=1.25"))
}

func TestUnderLoadTheOrderOfTheSetDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spilled := 0
	for range 300 {
		n := 2 + r.IntN(20)
		cs, loads := make([]engine.Candidate, n), map[engine.ID]uint32{}
		for i := range cs {
			cs[i] = engine.Candidate{ID: engine.ID(r.Uint64()), Weight: engine.Weight(r.IntN(5))}
			loads[cs[i].ID] = uint32(r.IntN(10))
		}
		var decisions [2]engine.Decision
		for i := range decisions {
			e := start(t, "bounded_load factor=1.2", cs)
			setInFlight(t, e, n, func(i int) uint32 { return loads[cs[i].ID] })
			require.NoError(t, e.Decide(&engine.Query{Key: 9}, &decisions[i]))
			r.Shuffle(n, func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		}
		require.Equal(t, decisions[0].ID, decisions[1].ID)
		require.Equal(t, decisions[0].Regime, decisions[1].Regime)
		if decisions[0].Regime == engine.RegimeSpill {
			spilled++
		}
	}
	assert.Greater(t, spilled, 30)
}

// A retry may avoid all the candidates that have room. Capacities over the open ones alone then
// place it, by rank again.
func TestARetryThatAvoidsAllRoomIsPlacedAmongTheOpenOnes(t *testing.T) {
	even := []engine.Weight{1, 1, 1}
	key := keyOf(t, even, 100, 101, 102)
	e := bounded(t, "bounded_load", even, 9, 9, 0) // capacity 10 with all open: nobody is full
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Key: key}, &d))
	assert.Equal(t, engine.ID(100), d.ID)
	assert.Equal(t, engine.RegimeDirect, d.Regime)

	e = bounded(t, "bounded_load factor=1", even, 40, 10, 0) // capacity 17: 100 is full, its successors are not
	require.NoError(t, e.Decide(&engine.Query{Key: key, Tried: []engine.ID{100}}, &d))
	assert.Equal(t, engine.ID(101), d.ID)
	assert.Equal(t, engine.RegimeDirect, d.Regime, "of the open ones it is the owner")

	e = bounded(t, "bounded_load factor=1", even, 30, 9, 0) // capacity 14, of the open two 20
	q := &engine.Query{Key: key, Tried: []engine.ID{101, 102}}
	x := e.Explain(q)
	require.NoError(t, e.Decide(q, &d))
	assert.Equal(t, engine.ID(100), d.ID)
	assert.Equal(t, engine.RegimeSpill, d.Regime)
	assert.Contains(t, x.Notes, "every open candidate is full: capacities are over the open ones alone")
	assert.Contains(t, x.Because, "30 in flight of 31")
}

func TestBoundedLoadCountsOnlyEligibleCandidates(t *testing.T) {
	even := []engine.Weight{1, 1, 1}
	key := keyOf(t, even, 100, 101, 102)
	e := bounded(t, "bounded_load", even, 3, 2, 90)
	var d engine.Decision
	require.NoError(t, e.SetStatus(0, 102, engine.StatusDraining))
	for range 90 { // drained queries end, beside the six decisions: no part of the total
		require.NoError(t, e.Report(0, engine.Report{ID: 102}))
	}
	for want := uint32(3); want < 9; want++ {
		require.Equal(t, want, e.InFlight(100))
		require.NoError(t, e.Decide(&engine.Query{Key: key}, &d))
		assert.Equal(t, engine.ID(100), d.ID)
	}
	require.NoError(t, e.Decide(&engine.Query{Key: key}, &d))
	assert.Equal(t, engine.ID(101), d.ID, "1.5*(9+2+1)/2 = 9, with 9 in flight")
}

func TestBoundedLoadSaysWhoseTheKeyIsAndHowFarItSpilled(t *testing.T) {
	even := []engine.Weight{1, 1, 1}
	e := bounded(t, "bounded_load factor=1", even, 4, 4, 1)
	x := e.Explain(&engine.Query{Key: keyOf(t, even, 101, 100, 102)})
	assert.Equal(t, engine.ID(102), x.Decision.ID)
	assert.Equal(t, "is the best-ranked for this key that has room: 1 in flight of 4", x.Because)
	assert.Equal(t, []string{
		"the owner is at position 1 and full: 4 in flight of 4", "spill depth 2",
		"capacities are 1 times the shares by weight of 9 in flight and this one",
	}, x.Notes)
	for _, row := range x.Weighed {
		assert.Equal(t, row.ID == 102, row.Verdict == engine.VerdictChosen)
		assert.Equal(t, row.ID != 102, row.Verdict == engine.VerdictFull)
	}
	x = e.Explain(&engine.Query{Key: keyOf(t, even, 102)})
	assert.Equal(t, "ranks first for this key of 3 open candidates and has room: 1 in flight of 4", x.Because)
	assert.Contains(t, x.Notes, "spill depth 0")
}

func TestATotalWeightThatCouldOverflowIsRefusedByName(t *testing.T) {
	p, err := policy.Parse("bounded_load")
	require.NoError(t, err)
	e := engine.New(p, engine.Config{MaxCandidates: 1 << 20})
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 1}}))
	cs := make([]engine.Candidate, 1<<64/10000/(1<<32)+2)
	for i := range cs {
		cs[i] = engine.Candidate{ID: engine.ID(i), Weight: 1<<32 - 1}
	}
	err = e.SetCandidates(0, cs)
	assert.ErrorIs(t, err, engine.ErrOverflow)
	assert.EqualError(t, err, "overflow: bounded_load: total weight 1844679863267910, at most 1844674407370955")
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Key: 3}, &d), "the old fleet stays")
	require.NoError(t, e.SetCandidates(0, cs[2:]))
	setInFlight(t, e, len(cs)-2, func(int) uint32 { return 1<<32 - 1 })
	require.NoError(t, e.Decide(&engine.Query{Key: 3}, &d), "the largest products there can be")
	assert.Equal(t, engine.RegimeDirect, d.Regime)
}
