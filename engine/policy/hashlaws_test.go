package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A placer says which replica a rule gives a key to, in a fleet where nothing is in flight.
type placer func(cs []engine.Candidate, key engine.Key, tried ...engine.ID) engine.ID

// placed asks a fresh engine, so that a law compares fleets and not histories.
func placed(spec string) placer {
	return func(cs []engine.Candidate, key engine.Key, tried ...engine.ID) engine.ID {
		p, err := policy.Parse(spec)
		if err != nil {
			panic(err)
		}
		e := engine.New(p, engine.Config{})
		if err := e.SetCandidates(0, cs); err != nil {
			panic(err)
		}
		var d engine.Decision
		if err := e.Decide(&engine.Query{Key: key, Tried: tried}, &d); err != nil {
			panic(err)
		}
		return d.ID
	}
}

// A hashLaw is a law of rules by affinity. It looks at one fleet of two or more, of which the
// member at one place changes, and one key.
type hashLaw func(place placer, cs []engine.Candidate, at int, key engine.Key) error

var hashLaws = map[string]hashLaw{
	"the order of the set does not matter":          orderFree,
	"only the keys of a replica that leaves move":   minimalDisruption,
	"a tried replica is as good as gone":            triedIsGone,
	"a draining replica is as good as gone":         drainingIsGone,
	"more weight takes keys and gives none away":    weightMonotone,
	"one weight for all is the same as none at all": scaleFree,
}

func orderFree(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	turned := append(slices.Clone(cs[at:]), cs[:at]...)
	slices.Reverse(turned[:len(turned)/2])
	return same(place(cs, key), place(turned, key))
}

func minimalDisruption(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	owner := place(cs, key)
	if owner == cs[at].ID {
		return nil
	}
	return same(owner, place(slices.Delete(slices.Clone(cs), at, at+1), key))
}

func triedIsGone(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	return same(place(slices.Delete(slices.Clone(cs), at, at+1), key), place(cs, key, cs[at].ID))
}

func drainingIsGone(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	drained := slices.Clone(cs)
	drained[at].Status = engine.StatusDraining
	return same(place(slices.Delete(slices.Clone(cs), at, at+1), key), place(drained, key))
}

func weightMonotone(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	heavier := slices.Clone(cs)
	heavier[at].Weight = 2*max(1, heavier[at].Weight) + 1
	before, after := place(cs, key), place(heavier, key)
	if after == cs[at].ID {
		return nil
	}
	return same(before, after)
}

func scaleFree(place placer, cs []engine.Candidate, at int, key engine.Key) error {
	even, none := slices.Clone(cs), slices.Clone(cs)
	for i := range cs {
		even[i].Weight, none[i].Weight = engine.Weight(at+1), 0
	}
	return same(place(none, key), place(even, key))
}

func same(want, got engine.ID) error {
	if want != got {
		return fmt.Errorf("%d, want %d", got, want)
	}
	return nil
}

func hashFleet(t *rapid.T) []engine.Candidate {
	ids := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64()), 2, 24, rapid.ID[uint64]).Draw(t, "ids")
	cs := make([]engine.Candidate, len(ids))
	for i, id := range ids {
		cs[i].ID = engine.ID(id)
		cs[i].Weight = engine.Weight(rapid.OneOf(rapid.Uint32Range(0, 5), rapid.Uint32Range(0, 1<<31-1)).Draw(t, "weight"))
	}
	return cs
}

func checkHashLaw(t *testing.T, law hashLaw, place placer) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		cs := hashFleet(t)
		at := rapid.IntRange(0, len(cs)-1).Draw(t, "at")
		first := rapid.Uint64Range(1, 1<<40).Draw(t, "key")
		for k := range uint64(10) {
			require.NoError(t, law(place, cs, at, engine.Key(first+k)))
		}
	})
}

func TestRulesByAffinityKeepTheirLaws(t *testing.T) {
	for _, spec := range hashSpecs {
		for name, law := range hashLaws {
			t.Run(spec+": "+name, func(t *testing.T) { checkHashLaw(t, law, placed(spec)) })
		}
	}
}

// Each law must be able to fail: these rules are wrong in one respect each.
func TestTheLawsOfAffinityNoticePlantedFaults(t *testing.T) {
	right := placed("rendezvous")
	without := func(cs []engine.Candidate, tried []engine.ID) []engine.Candidate {
		return slices.DeleteFunc(slices.Clone(cs), func(c engine.Candidate) bool {
			return c.Status != engine.StatusReady || slices.Contains(tried, c.ID)
		})
	}
	for name, fault := range map[string]placer{
		"the order of the set does not matter": func(cs []engine.Candidate, key engine.Key, _ ...engine.ID) engine.ID {
			byPlace := slices.Clone(cs)
			for i := range byPlace {
				byPlace[i].ID = engine.ID(i)
			}
			return cs[right(byPlace, key)].ID
		},
		"only the keys of a replica that leaves move": func(cs []engine.Candidate, key engine.Key, _ ...engine.ID) engine.ID {
			return cs[uint64(key)%uint64(len(cs))].ID
		},
		"a tried replica is as good as gone": func(cs []engine.Candidate, key engine.Key, tried ...engine.ID) engine.ID {
			if len(tried) > 0 { // rotates where it should rank again
				cs = without(cs, tried)
				return cs[uint64(key)%uint64(len(cs))].ID
			}
			return right(cs, key)
		},
		"a draining replica is as good as gone": func(cs []engine.Candidate, key engine.Key, _ ...engine.ID) engine.ID {
			ready := without(cs, nil)
			if len(ready) < len(cs) {
				key++
			}
			return right(ready, key)
		},
		"more weight takes keys and gives none away": func(cs []engine.Candidate, key engine.Key, _ ...engine.ID) engine.ID {
			for _, c := range cs { // the weights are part of what is hashed
				key = key*31 + engine.Key(c.Weight)
			}
			return right(cs, key)
		},
		"one weight for all is the same as none at all": func(cs []engine.Candidate, key engine.Key, _ ...engine.ID) engine.ID {
			return right(cs, key+engine.Key(cs[0].Weight))
		},
	} {
		noticed := 0
		for key := range engine.Key(200) {
			cs := make([]engine.Candidate, 10)
			for i := range cs {
				cs[i] = engine.Candidate{ID: engine.ID(100 + i), Weight: engine.Weight(i % 3)}
			}
			if hashLaws[name](fault, cs, int(key%10), key+1) != nil {
				noticed++
			}
		}
		require.NotZero(t, noticed, name)
	}
	require.Len(t, hashLaws, 6, "a law without its planted fault")
}
