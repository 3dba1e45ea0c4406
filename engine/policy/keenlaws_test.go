package policy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestPrequalKeenKeepsTheLawsOfPools(t *testing.T) {
	enginetest.TestKeenPool(t, func(settings string) enginetest.Maker {
		return enginetest.Native(policy.Parse, "prequal variant=keen "+settings)
	})
}

func TestTheKeenTwinKeepsTheLawsOfPools(t *testing.T) {
	walks := 500
	if testing.Short() {
		walks = 50 // the twin works everything out from the start each time
	}
	for _, law := range enginetest.KeenLaws() {
		assert.NoError(t, law.Check(twins("keen", ""), 1, walks), law.Name)
	}
}

// What the keen variant changes is seen from outside, and so is what it does not change.
func TestTheKeenLawsNoticePlantedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute under the race detector; the whole run has it")
	}
	for law, of := range map[string][]fault{
		"any cold one on offer decides, none of less weight; else the least RIF":  {"RIF weighs nothing", "RIF weighs by itself", "hot by weight", "hot at the threshold"},
		"of cold entries the one of least latency, load and age decides":          {"age weighs nothing", "age weighs twice", "RIF weighs nothing"},
		"a reading counts three tenths of its replica's latency, for ten seconds": {"latency not smoothed", "memory never ends", "the newest counts half", "memory ends at nine seconds"},
		"probes go where much is promised, and forget nobody":                     {"probes at random", "probes of the worst", "the unknown come last", "memory never ends"},
		"one entry leaves before each decision, the worst and the oldest in turn": {"removal always worst"},
		"the newest reading of a replica counts; a full pool lets its oldest go":  {"late answers win"},
	} {
		laws := enginetest.KeenLaws()
		at := slices.IndexFunc(laws, func(l enginetest.PoolLaw) bool { return l.Name == law })
		if !assert.GreaterOrEqual(t, at, 0, law) {
			continue
		}
		for _, f := range of {
			assert.Contains(t, slices.Concat(faults, keenFaults), f)
			assert.Error(t, laws[at].Check(twins("keen", f), 1, 800), "%s, with the fault %q", law, f)
		}
	}
}
