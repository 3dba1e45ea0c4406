package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// The known order, and what a drained replica keeps.
func ExampleSmoothWeightedRoundRobin() {
	p, err := policy.NewSmoothWeightedRoundRobin(1, "zero")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	names := "abc"
	a, b, c := engine.IDOf("a"), engine.IDOf("b"), engine.IDOf("c")
	if err := e.SetCandidates(0, []engine.Candidate{{ID: a, Weight: 5}, {ID: b, Weight: 1}, {ID: c, Weight: 1}}); err != nil {
		fmt.Println(err)
		return
	}
	turns := func(n int) (order string) {
		for range n {
			var d engine.Decision
			if err := e.Decide(&engine.Query{}, &d); err != nil {
				return err.Error()
			}
			order += names[d.Index : d.Index+1]
		}
		return order
	}
	fmt.Println(turns(7))
	_ = e.SetStatus(0, a, engine.StatusDraining)
	fmt.Println(turns(4))
	_ = e.SetStatus(0, a, engine.StatusReady)
	fmt.Println(turns(7))
	// Output:
	// aabacaa
	// bcbc
	// aabacaa
}
