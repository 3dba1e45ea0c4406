package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Three replicas, one of which may take five times as much as another.
func ExampleWeightedRandom() {
	e := engine.New(policy.NewWeightedRandom(1), engine.Config{})
	err := e.SetCandidates(0, []engine.Candidate{
		{ID: engine.IDOf("large"), Weight: 5},
		{ID: engine.IDOf("small"), Weight: 1},
		{ID: engine.IDOf("medium"), Weight: 2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var counts [3]int
	for range 8000 {
		var d engine.Decision
		if err := e.Decide(&engine.Query{}, &d); err != nil {
			fmt.Println(err)
			return
		}
		counts[d.Index]++
	}
	fmt.Println("large took more than twice what medium took:", counts[0] > 2*counts[2])
	fmt.Println("medium took more than small:", counts[2] > counts[1])
	// Output:
	// large took more than twice what medium took: true
	// medium took more than small: true
}
