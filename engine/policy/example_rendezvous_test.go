package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A key goes to one replica as long as it is there; with the winner tried, the same call gives
// the second in rank, where a hedge goes and where the key would move.
func ExampleRendezvous() {
	p, err := policy.Parse("rendezvous seed=7")
	if err != nil {
		fmt.Println(err)
		return
	}
	names := map[engine.ID]string{}
	var fleet []engine.Candidate
	for _, name := range []string{"ash", "birch", "cedar", "dogwood"} {
		id := engine.IDOf(name)
		names[id] = name
		fleet = append(fleet, engine.Candidate{ID: id})
	}
	e := engine.New(p, engine.Config{})
	if err := e.SetCandidates(0, fleet); err != nil {
		fmt.Println(err)
		return
	}
	for _, user := range []string{"user-1", "user-2", "user-3"} {
		var first, second engine.Decision
		_ = e.Decide(&engine.Query{Key: engine.KeyOf(user)}, &first)
		_ = e.Decide(&engine.Query{Key: engine.KeyOf(user), Tried: []engine.ID{first.ID}}, &second)
		fmt.Println(user, "to", names[first.ID]+", hedge to", names[second.ID])
	}
	// Output:
	// user-1 to cedar, hedge to ash
	// user-2 to ash, hedge to cedar
	// user-3 to cedar, hedge to birch
}
