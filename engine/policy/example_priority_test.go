package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Two of four replicas near by are down, so three tenths of the load go to the ones far away.
func ExamplePriority() {
	p, err := policy.Parse("priority seed=7 panic=fail_closed")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	_ = e.SetCandidates(0, []engine.Candidate{
		{ID: engine.IDOf("near-1")}, {ID: engine.IDOf("near-2")},
		{ID: engine.IDOf("near-3"), Status: engine.StatusUnavailable}, {ID: engine.IDOf("near-4"), Status: engine.StatusUnavailable},
		{ID: engine.IDOf("far-1"), Priority: 1}, {ID: engine.IDOf("far-2"), Priority: 1},
	})
	spilled := 0
	var d engine.Decision
	for range 10000 {
		if err := e.Decide(&engine.Query{}, &d); err != nil {
			fmt.Println(err)
			return
		}
		if d.Regime == engine.RegimeSpill {
			spilled++
		}
	}
	fmt.Println("spilled:", (spilled+50)/100, "%")
	for _, note := range e.Explain(&engine.Query{}).Notes {
		fmt.Println(note)
	}
	// Output:
	// spilled: 30 %
	// priority 0: weight 2 of 4 available (0.5, effective 0.7), takes 0.7
	// priority 1: weight 2 of 2 available (1, effective 1), takes 0.3
	// priority 0 cannot take all load: 0.3 of it spills
}
