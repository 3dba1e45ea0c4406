package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// filled decides for the first candidate and fills in one field of the record.
type filled struct {
	engine.Base
	fill func(*engine.Decision)
}

func (*filled) Name() string { return "filled" }
func (*filled) Spec() string { return "filled" }
func (p *filled) Decide(engine.Instant, engine.Key) error {
	p.Set.Out = engine.Decision{Threshold: engine.NoThreshold}
	p.fill(&p.Set.Out)
	return nil
}

// Whatever a policy fills in reaches the caller: the short way is for records at rest only.
func TestEveryFieldOfADecisionReachesTheCaller(t *testing.T) {
	for name, fill := range map[string]func(*engine.Decision){
		"nothing":   func(*engine.Decision) {},
		"latency":   func(d *engine.Decision) { d.Latency = 1 },
		"age":       func(d *engine.Decision) { d.Age = 1 },
		"offered":   func(d *engine.Decision) { d.Offered = 1 },
		"cold":      func(d *engine.Decision) { d.Cold = 1 },
		"hot":       func(d *engine.Decision) { d.Hot = 1 },
		"threshold": func(d *engine.Decision) { d.Threshold = 0 },
		"rif":       func(d *engine.Decision) { d.RIF = 1 },
		"uses left": func(d *engine.Decision) { d.UsesLeft = 1 },
		"regime":    func(d *engine.Decision) { d.Regime = engine.RegimeSpill },
		"cause":     func(d *engine.Decision) { d.Cause = engine.CauseThin },
	} {
		e := engine.New(&filled{fill: fill}, engine.Config{})
		assert.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 9}}))
		want := engine.Decision{ID: 9, Threshold: engine.NoThreshold}
		fill(&want)
		var got engine.Decision
		for range 2 {
			assert.NoError(t, e.Decide(&engine.Query{Now: 1}, &got))
			assert.Equal(t, want, got, name)
		}
	}
}

// A decision that says more than an index is whole, whatever the one before it said, and on the
// short way as on the long.
func TestABareDecisionDoesNotHideTheNext(t *testing.T) {
	p := &mixed{}
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, ids(1, 2)))
	for _, tried := range [][]engine.ID{nil, nil, {2}, {2}, nil} {
		for _, p.full = range []bool{false, true, true, false} {
			d := decide(t, e, engine.Query{Now: 1, Tried: tried})
			assert.Equal(t, p.full, d.RIF == 5, "%+v", d)
		}
	}
}

type mixed struct {
	engine.Base
	full bool
}

func (*mixed) Name() string { return "mixed" }
func (*mixed) Spec() string { return "mixed" }
func (p *mixed) Decide(engine.Instant, engine.Key) error {
	if !p.full {
		p.Set.Choose(0, engine.RegimeDirect)
		return nil
	}
	p.Set.Out = engine.Decision{RIF: 5, Threshold: engine.NoThreshold}
	return nil
}

// Nobody is asked to decide among nobody, however often.
func TestAFleetOfNobodyStaysRefused(t *testing.T) {
	p := &chooser{}
	e := engine.New(p, engine.Config{})
	require.NoError(t, e.SetCandidates(0, []engine.Candidate{{ID: 1, Status: engine.StatusDraining}, {ID: 2, Status: engine.StatusUnavailable}}))
	assert.True(t, p.Set.IsDraining(0))
	assert.False(t, p.Set.IsDraining(1))
	var d engine.Decision
	for range 3 {
		assert.ErrorIs(t, e.Decide(&engine.Query{Now: 1}, &d), engine.ErrNoneEligible)
		assert.ErrorIs(t, e.Place(1, 0), engine.ErrNoneEligible)
	}
}

// A refused block changes nothing, also after one that was taken.
func TestABlockThatIsRefusedAfterOneThatWasTakenChangesNothing(t *testing.T) {
	e, _ := started(t, ids(1, 2, 3))
	for range 3 { // a change of the set leaves room for blocks behind
		require.NoError(t, e.SetCandidates(100, ids(1, 2, 3)))
	}
	decide(t, e, engine.Query{Now: 200})
	good := snapshot(t, e)
	decide(t, e, engine.Query{Now: 300})
	require.NoError(t, e.Restore(good))
	bad := append([]byte(nil), good...)
	for i := range bad {
		bad[i] ^= 0xff
	}
	require.ErrorIs(t, e.Restore(bad), engine.ErrBlock)
	assert.Equal(t, good, snapshot(t, e))
}
