package policy_test

import (
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

var names = map[engine.ID]string{}

// trees is an engine with three candidates for the examples.
func trees(spec string) *engine.Engine {
	p, err := policy.Parse(spec)
	if err != nil {
		panic(err)
	}
	var fleet []engine.Candidate
	for _, name := range []string{"ash", "birch", "cedar"} {
		id := engine.IDOf(name)
		names[id] = name
		fleet = append(fleet, engine.Candidate{ID: id})
	}
	e := engine.New(p, engine.Config{})
	if err := e.SetCandidates(0, fleet); err != nil {
		panic(err)
	}
	return e
}

// decide places a query and tells the replica's name.
func decide(e *engine.Engine, q engine.Query) string {
	var d engine.Decision
	if err := e.Decide(&q, &d); err != nil {
		return err.Error()
	}
	return names[d.ID]
}
