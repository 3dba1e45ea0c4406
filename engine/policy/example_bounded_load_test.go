package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A hot key fills its owner to the factor's share of what is in flight; then its queries spill to
// the next in its ranking, where its cache entries will be found again.
func ExampleBoundedLoad() {
	p, err := policy.Parse("bounded_load seed=7 factor=1.25")
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
	hot := engine.KeyOf("the front page")
	for range 100 {
		var d engine.Decision
		_ = e.Decide(&engine.Query{Key: hot}, &d)
	}
	for _, c := range fleet {
		fmt.Println(names[c.ID], e.InFlight(c.ID))
	}
	x := e.Explain(&engine.Query{Key: hot})
	fmt.Println(x.Decision.Regime, "-", x.Sentence(func(id engine.ID) string { return names[id] }))
	// Output:
	// ash 31
	// birch 6
	// cedar 31
	// dogwood 32
	// spill - cedar is the best-ranked for this key that has room: 31 in flight of 32; next would be ash
}
