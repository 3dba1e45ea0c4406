package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
