package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A replica that joins gets a tenth of its share at first, and all of it after slow_start.
func ExampleLeastRequest() {
	p, err := policy.Parse("least_request seed=7 slow_start=30s")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	fleet := []engine.Candidate{{ID: 1, Weight: 2}, {ID: 2, Weight: 1}}
	_ = e.SetCandidates(0, fleet)

	minute := engine.Instant(60 * engine.Second)
	_ = e.SetCandidates(minute, append(fleet, engine.Candidate{ID: 3, Weight: 1}))
	for _, now := range []engine.Instant{minute, 2 * minute} {
		x := e.Explain(&engine.Query{Now: now})
		fmt.Println("replica", x.Decision.ID, x.Because)
		for _, note := range x.Notes {
			fmt.Println(note)
		}
	}
	// Output:
	// replica 1 was drawn with a share of 64.52 % (weight 2, 0 in flight)
	// position 2 is ramped up: its share counts 10 %
	// replica 1 was drawn with a share of 50 % (weight 2, 0 in flight)
}
