package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/enginetest"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestALocalityIsDrawnByCapacityThenAMemberByWeight(t *testing.T) {
	// a: 5 of 7 up, times 1.4, is whole: 7. b: 1 of 4, times 1.4: 1.4. c: 1.6 of 1.6, by weight 8 of 8.
	e, _ := grouped(t, "locality seed=1", row{0, 5, up, "a"}, row{0, 2, down, "a"}, row{0, 1, up, "b"}, row{0, 3, down, "b"}, row{0, 2, up, "c"}, row{0, 6, up, "c"}, row{0, 9, draining, "d"})
	total := 7 + 1.4 + 8
	drawn(t, e, nil, 7/total, 0, 1.4/total, 0, 2/total, 6/total, 0)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 2), "without a zone no locality is preferred")
}

func TestPriorityComesBeforeLocality(t *testing.T) {
	// Priority 0 has 3 of 6 up: 0.7. In it, a has 1 of 4 (1.4) and b has 2 of 2 (2).
	rows := []row{{0, 1, up, "a"}, {0, 3, down, "a"}, {0, 2, up, "b"}, {1, 1, up, "a"}, {1, 3, up, "b"}}
	e, _ := grouped(t, "locality seed=2", rows...)
	drawn(t, e, nil, 0.7*1.4/3.4, 0, 0.7*2/3.4, 0.075, 0.225)
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 3))
	// From a, which has 1.4 of 3.4 for half of the callers; of priority 1 it has a quarter.
	e, _ = grouped(t, "locality seed=2 zone=a", rows...)
	drawn(t, e, nil, 0.7*2.8/3.4, 0, 0.7*0.6/3.4, 0.15, 0.15)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 0))
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 2), "home, the preferred one, had no room")
	assert.Equal(t, engine.RegimeSpill, regimeOf(t, e, 3))
	e, _ = grouped(t, "locality seed=2 zone=b", rows...)
	drawn(t, e, nil, 0, 0, 0.7, 0, 0.3)
}

func TestWhatHomeCannotTakeGoesWhereRoomIsLeft(t *testing.T) {
	// Capacity 1, 2, 3, 6 of 12, a quarter of the callers each: a keeps a third of its own; b's
	// callers have none to spare, c none left, d has all the room beyond its own callers.
	rows := []row{{0, 1, up, "a"}, {0, 2, up, "b"}, {0, 3, up, "c"}, {0, 6, up, "d"}}
	e, _ := grouped(t, "locality seed=3 zone=a", rows...)
	drawn(t, e, nil, 1.0/3, 0, 0, 2.0/3)
	// With a third of the callers in a and d each, a sixth in b and c: a keeps a quarter, and c
	// (3/12 for 2/12) and d (6/12 for 4/12) have room left, one to two.
	e, _ = grouped(t, "locality seed=3 zone=a callers=a:2,b:1,c:1,d:2", rows...)
	drawn(t, e, nil, 0.25, 0, 0.25, 0.5)
	e, _ = grouped(t, "locality seed=3 zone=d", rows...)
	drawn(t, e, nil, 0, 0, 0, 1)
	e, _ = grouped(t, "locality seed=3 zone=nowhere", rows...)
	drawn(t, e, nil, 1.0/12, 2.0/12, 3.0/12, 6.0/12)
	assert.Equal(t, engine.RegimeDirect, regimeOf(t, e, 3), "a caller without replicas near by prefers none")
}

func TestInPanicNobodyIsAtHome(t *testing.T) {
	rows := []row{{0, 1, up, "a"}, {0, 2, up, "b"}, {0, 9, down, "b"}}
	e, _ := grouped(t, "locality seed=4 zone=b", rows...)
	drawn(t, e, nil, 1.0/3.8, 2.8/3.8, 0)
	assert.Equal(t, engine.RegimePanic, regimeOf(t, e, 0))
	e, _ = grouped(t, "locality seed=4 zone=b panic_threshold=0.2", rows...)
	drawn(t, e, nil, 0, 1, 0)
}

func TestALocalityThatIsAllTriedGivesItsShareToTheOthers(t *testing.T) {
	rows := []row{{0, 1, up, "a"}, {0, 2, up, "b"}, {0, 3, up, "c"}, {0, 3, up, "c"}, {1, 1, up, "a"}}
	for _, zone := range []string{"", " zone=nowhere"} {
		e, cs := grouped(t, "locality seed=5"+zone, rows...)
		drawn(t, e, []engine.ID{cs[1].ID}, 1.0/7, 0, 3.0/7, 3.0/7, 0)
		drawn(t, e, []engine.ID{cs[1].ID, cs[2].ID}, 1.0/7, 0, 0, 6.0/7, 0)
		drawn(t, e, []engine.ID{cs[0].ID, cs[2].ID, cs[3].ID}, 0, 1, 0, 0, 0)
		drawn(t, e, []engine.ID{cs[0].ID, cs[1].ID, cs[2].ID, cs[3].ID}, 0, 0, 0, 0, 1)
	}
	// From c, which keeps all: the others by capacity, and that is spill.
	e, cs := grouped(t, "locality seed=5 zone=c", rows...)
	tried := []engine.ID{cs[2].ID, cs[3].ID}
	drawn(t, e, tried, 1.0/3, 2.0/3, 0, 0, 0)
	var d engine.Decision
	require.NoError(t, e.Decide(&engine.Query{Tried: tried}, &d))
	assert.Equal(t, engine.RegimeSpill, d.Regime)
	// From a, which keeps 1/3 of its own callers': where the rest goes is tried, so home has a part of it.
	e, cs = grouped(t, "locality seed=5 zone=a", rows...)
	drawn(t, e, []engine.ID{cs[2].ID, cs[3].ID}, 1.0/3+2.0/9, 4.0/9, 0, 0, 0)
	for range 300 {
		require.NoError(t, e.Decide(&engine.Query{Tried: []engine.ID{cs[2].ID, cs[3].ID}}, &d))
		assert.Equal(t, d.Index != 0, d.Regime == engine.RegimeSpill)
	}
}

func TestLocalityWithAZoneKeepsTheLaws(t *testing.T) {
	for _, spec := range []string{"locality seed=7 zone=zone-a", "locality seed=7 zone=zone-b callers=zone-b:5,zone-a:1 panic_threshold=0"} {
		enginetest.TestPolicy(t, enginetest.Native(policy.Parse, spec))
	}
}

func TestLocalitySpecsAreCanonicalAndNameWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"locality": "locality seed=0",
		"locality callers=b:2,eu/a:7 zone=b overprovision=2": "locality seed=0 overprovision=2 zone=b callers=b:2,eu/a:7",
		"locality zone=b callers=b:2,a:1":                    "locality seed=0 zone=b callers=a:1,b:2",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err)
		assert.Equal(t, want, p.Spec())
		again, err := policy.Parse(p.Spec())
		require.NoError(t, err)
		assert.Equal(t, want, again.Spec())
	}
	const name = "want a name of 1 to 128 bytes without spaces, commas and colons"
	for spec, want := range map[string]string{
		"locality zone=a,b":                                             "locality: zone=a,b: " + name,
		"locality zone=" + strings.Repeat("z", 129):                     "locality: zone=" + strings.Repeat("z", 40) + "...: " + name,
		"locality zone=a callers=a":                                     "locality: callers=a: want zone:callers, as in eu-a:3,eu-b:1",
		"locality zone=a callers=a:1,":                                  "locality: callers: want zone:callers, as in eu-a:3,eu-b:1",
		"locality zone=a callers=a:-1":                                  "locality: callers=a:-1: want zone:callers, as in eu-a:3,eu-b:1",
		"locality zone=a callers=:1":                                    "locality: callers: " + name,
		"locality zone=a callers=a:0":                                   "locality: callers=a:0: want 1 to 1000000 callers",
		"locality zone=a callers=a:1,a:2":                               "locality: callers=a: want each zone once",
		"locality zone=a callers=b:1":                                   "locality: callers=b:1: want the caller's own zone among them",
		"locality callers=b:1":                                          "locality: callers=b:1: want the caller's own zone among them",
		"locality zone=a callers=" + strings.Repeat("a:1,", 64) + "a:1": "locality: callers=65 zones: want at most 64",
	} {
		_, err := policy.Parse(spec)
		require.ErrorIs(t, err, engine.ErrConfig, spec)
		assert.EqualError(t, err, want)
	}
	_, err := policy.NewLocality(policy.LocalityConfig{GroupConfig: policy.DefaultGroups(1), Zone: "a b"})
	assert.ErrorIs(t, err, engine.ErrConfig)
}

func TestLocalityExplainsWhereAndWhy(t *testing.T) {
	e, cs := grouped(t, "locality seed=8 zone=a", row{0, 1, up, "a"}, row{0, 1, down, "a"}, row{0, 3, up, "b"}, row{0, 2, up, ""}, row{1, 1, down, ""})
	x := e.Explain(&engine.Query{Tried: []engine.ID{cs[0].ID, cs[3].ID}})
	require.NoError(t, x.Err)
	assert.Equal(t, cs[2].ID, x.Decision.ID)
	b := "locality 1043706395"
	assert.Equal(t, "was drawn by weight in "+b+" of priority 0; this query has been all over locality a (the caller's)", x.Because)
	assert.Equal(t, []string{
		"priority 0: weight 6 of 7 available (0.8571, effective 1), takes 1",
		"priority 1: weight 0 of 1 available (0, effective 0), takes 0",
		"the unnamed locality: weight 2 of 2 available (1, effective 1), takes 0 of what spills",
		"locality a (the caller's): weight 1 of 2 available (0.5, effective 0.7), keeps 0.6562 of its callers' queries",
		b + ": weight 3 of 3 available (1, effective 1), takes 1 of what spills",
	}, x.Notes)
	e, cs = grouped(t, "locality seed=8 zone=a callers=a:1,b:1", row{0, 1, up, "a"}, row{0, 1, up, "a"}, row{0, 6, up, "b"}, row{1, 1, up, "b"})
	var d engine.Decision
	for d.Index != 2 {
		x = e.Explain(&engine.Query{Tried: []engine.ID{cs[0].ID}})
		require.NoError(t, e.Decide(&engine.Query{Tried: []engine.ID{cs[0].ID}}, &d))
	}
	assert.Equal(t, "was drawn by weight in locality b of priority 0; locality a (the caller's) keeps 0.5 of its callers' queries", x.Because)
	x = e.Explain(&engine.Query{Tried: []engine.ID{cs[0].ID, cs[1].ID, cs[2].ID}})
	assert.Equal(t, "was drawn by weight in locality b of priority 1, because this query has been all over priority 0", x.Because)
	e, _ = grouped(t, "locality seed=8", row{0, 1, up, ""}, row{0, 3, down, ""}, row{1, 1, up, ""}, row{1, 9, down, ""})
	x = e.Explain(&engine.Query{})
	assert.Equal(t, "the unnamed locality: weight 1 of 4 available (0.25, effective 0.35), takes 1 of priority 0", x.Notes[3])
	assert.Equal(t, "was drawn by weight in the unnamed locality of priority 0, which is in panic", x.Because)
}
