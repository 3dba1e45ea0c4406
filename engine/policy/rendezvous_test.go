package policy_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/internal/rank"
	"github.com/headroom-lb/headroom/engine/policy"
)

// hashSpecs are the rules that keep the laws of affinity, bounded_load while nothing is in flight.
var hashSpecs = []string{"rendezvous", "weighted_rendezvous", "bounded_load"}

func TestSpecsOfHashRules(t *testing.T) {
	for spec, want := range map[string]string{
		"rendezvous":                 "rendezvous seed=0",
		"rendezvous seed=9":          "rendezvous seed=9",
		"weighted_rendezvous seed=9": "weighted_rendezvous seed=9",
		"bounded_load":               "bounded_load seed=0",
		"bounded_load factor=1.50":   "bounded_load seed=0",
		"bounded_load factor=1":      "bounded_load seed=0 factor=1",
		"bounded_load factor=1.0625": "bounded_load seed=0 factor=1.0625",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, p.Spec())
	}
	for spec, want := range map[string]string{
		"rendezvous factor=2":       "rendezvous: factor: no such setting; want one of seed",
		"bounded_load factor=0.99":  "bounded_load: factor=0.99: want 1 to 100",
		"bounded_load factor=100.1": "bounded_load: factor=100.1: want 1 to 100",
		"bounded_load factor=150%":  "bounded_load: factor=150%: want a number that is not negative, with at most four decimals",
	} {
		_, err := policy.Parse(spec)
		assert.ErrorIs(t, err, engine.ErrConfig)
		assert.EqualError(t, err, want)
	}
}

func ids(cs []engine.Candidate) []engine.ID {
	out := make([]engine.ID, len(cs))
	for i, c := range cs {
		out[i] = c.ID
	}
	return out
}

// rendezvousOrder is the rule told slowly: sort by score, the highest first, then by ID.
func rendezvousOrder(cs []engine.Candidate, key engine.Key) []engine.ID {
	score := func(id engine.ID) uint64 { return rank.Score(rank.Key(uint64(key)), rank.Replica(uint64(id))) }
	order := ids(cs)
	slices.SortFunc(order, func(a, b engine.ID) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a, b))
	})
	return order
}

// retried is the order in which a query's attempts go out, each avoiding the ones before.
func retried(t *testing.T, e *engine.Engine, key engine.Key, attempts int) (order []engine.ID) {
	t.Helper()
	for range attempts {
		var d engine.Decision
		require.NoError(t, e.Decide(&engine.Query{Key: key, Tried: order}, &d))
		require.Equal(t, engine.RegimeDirect, d.Regime)
		order = append(order, d.ID)
	}
	return order
}

func TestDecidingAgainWithTheWinnersTriedIsTheTopOfTheRanking(t *testing.T) {
	e, cs := machine(t, "rendezvous", 40)
	for key := range engine.Key(200) {
		assert.Equal(t, rendezvousOrder(cs, key+1)[:policy.MaxChoices], retried(t, e, key+1, policy.MaxChoices))
	}
}

// A walk of churn, drains and retries against the rule told slowly, and against an engine that
// has no history.
func agesWell(t *testing.T, spec string, first func(open []engine.Candidate, key engine.Key) engine.ID) {
	t.Helper()
	for seed := range uint64(6) {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		e, w := engine.New(p, engine.Config{}), enginetest.NewWalker(seed)
		require.NoError(t, w.Begin(e))
		for range 3000 {
			s := w.Step(e)
			if s.Decision == nil || s.Query.Key == 0 {
				continue
			}
			open := slices.DeleteFunc(slices.Clone(w.Fleet), func(c engine.Candidate) bool {
				return !c.Status.Eligible() || slices.Contains(s.Query.Tried, c.ID)
			})
			require.Equal(t, first(open, s.Query.Key), s.Decision.ID)
			require.Equal(t, placed(spec)(w.Fleet, s.Query.Key, s.Query.Tried...), s.Decision.ID)
		}
	}
}

func TestAnAgedRendezvousAgreesWithTheRuleAndWithAFreshOne(t *testing.T) {
	agesWell(t, "rendezvous", func(open []engine.Candidate, key engine.Key) engine.ID { return rendezvousOrder(open, key)[0] })
}

// Keys as people number them: in order, and as names in order.
var keyings = map[string]func(i int) engine.Key{
	"numbers": func(i int) engine.Key { return engine.Key(i + 1) },
	"names":   func(i int) engine.Key { return engine.KeyOf(fmt.Sprint("user-", i)) },
	"none":    func(int) engine.Key { return 0 },
}

func TestEachReplicaGetsItsShareOfKeysAndOfKeylessQueries(t *testing.T) {
	const replicas = 7
	n := enginetest.Draws(1.0/replicas, 0.04)
	for name, key := range keyings {
		e, cs := machine(t, "rendezvous seed=3", replicas)
		first, second := make([]int, replicas), make([]int, replicas)
		var d engine.Decision
		for i := range n {
			require.NoError(t, e.Decide(&engine.Query{Key: key(i)}, &d))
			first[d.Index]++
			if d.Index == 2 && key(i) != 0 { // where its keys go when a replica is gone
				require.NoError(t, e.Decide(&engine.Query{Key: key(i), Tried: []engine.ID{cs[2].ID}}, &d))
				second[d.Index]++
			}
		}
		for i := range first {
			assert.NoError(t, enginetest.CheckShare(1.0/replicas, first[i], n), name)
			if i != 2 && key(0) != 0 {
				assert.NoError(t, enginetest.CheckShare(1.0/(replicas-1), second[i], first[2]), "%s, second", name)
			}
		}
	}
}

func TestClientsWithOtherSeedsAndShardsAgreeOnKeys(t *testing.T) {
	for _, spec := range hashSpecs {
		a, cs := machine(t, spec+" seed=1", 30)
		p, err := policy.Parse(spec + " seed=2")
		require.NoError(t, err)
		b := engine.New(p, engine.Config{Salt: 99})
		require.NoError(t, b.SetCandidates(0, cs))
		apart := 0
		for i := range 300 {
			var x, y engine.Decision
			require.NoError(t, a.Decide(&engine.Query{Key: engine.Key(i)}, &x))
			require.NoError(t, b.Decide(&engine.Query{Key: engine.Key(i)}, &y))
			if i > 0 {
				require.Equal(t, x.ID, y.ID, spec)
			}
			require.NoError(t, a.Report(0, engine.Report{ID: x.ID}))
			require.NoError(t, b.Report(0, engine.Report{ID: y.ID}))
			require.NoError(t, a.Decide(&engine.Query{}, &x))
			require.NoError(t, b.Decide(&engine.Query{}, &y))
			if x.ID != y.ID {
				apart++
			}
			require.NoError(t, a.Report(0, engine.Report{ID: x.ID}))
			require.NoError(t, b.Report(0, engine.Report{ID: y.ID}))
		}
		assert.Greater(t, apart, 250, "queries without a key do not march in step")
	}
}

func TestRendezvousSaysWhy(t *testing.T) {
	e, cs := machine(t, "rendezvous", 5)
	key := engine.KeyOf("user-1")
	x := e.Explain(&engine.Query{Key: key, Tried: []engine.ID{cs[0].ID}})
	open := rendezvousOrder(cs[1:], key)
	assert.Equal(t, "A has the highest score for this key of 4 open candidates; next would be B", x.Sentence(func(id engine.ID) string {
		return map[engine.ID]string{open[0]: "A", open[1]: "B"}[id]
	}))
	assert.Contains(t, e.Explain(&engine.Query{}).Because, "a fresh draw")
}
