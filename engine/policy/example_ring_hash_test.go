package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A key keeps its replica while that is there, and when it has left only its keys move.
func ExampleRingHash() {
	p, err := policy.Parse("ring_hash")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	names := map[engine.ID]string{}
	var fleet []engine.Candidate
	for _, name := range []string{"a", "b", "c"} {
		names[engine.IDOf(name)] = name
		fleet = append(fleet, engine.Candidate{ID: engine.IDOf(name)})
	}
	owners := func() {
		said := ""
		for _, user := range []string{"ann", "bob", "eve", "joe"} {
			var d engine.Decision
			if err := e.Decide(&engine.Query{Key: engine.KeyOf(user)}, &d); err != nil {
				fmt.Println(err)
			}
			said += " " + user + "=" + names[d.ID]
		}
		fmt.Println(said[1:])
	}
	_ = e.SetCandidates(0, fleet)
	owners()
	_ = e.SetStatus(0, engine.IDOf("c"), engine.StatusDraining)
	owners()
	// Output:
	// ann=c bob=c eve=c joe=b
	// ann=b bob=b eve=a joe=b
}
