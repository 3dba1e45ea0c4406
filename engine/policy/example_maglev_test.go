package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A retry of a key goes to the same second replica each time.
func ExampleMaglev() {
	p, err := policy.Parse("maglev weighted=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	names := map[engine.ID]string{}
	var fleet []engine.Candidate
	for i, name := range []string{"a", "b", "c"} {
		names[engine.IDOf(name)] = name
		fleet = append(fleet, engine.Candidate{ID: engine.IDOf(name), Weight: engine.Weight(i + 1)})
	}
	_ = e.SetCandidates(0, fleet)
	for range 2 {
		q := engine.Query{Key: engine.KeyOf("ann")}
		for range fleet {
			var d engine.Decision
			if err := e.Decide(&q, &d); err != nil {
				fmt.Println(err)
			}
			fmt.Println(len(q.Tried), names[d.ID])
			q.Tried = append(q.Tried, d.ID)
		}
	}
	// Output:
	// 0 b
	// 1 a
	// 2 c
	// 0 b
	// 1 a
	// 2 c
}
