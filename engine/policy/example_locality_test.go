package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Zone a has a quarter of the capacity and half of the callers: they keep half of their queries
// there, and the rest goes to zone b.
func ExampleLocality() {
	p, err := policy.Parse("locality seed=7 zone=a")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	a, b := engine.LocalityOf("a"), engine.LocalityOf("b")
	_ = e.SetCandidates(0, []engine.Candidate{
		{ID: engine.IDOf("a-1"), Locality: a},
		{ID: engine.IDOf("b-1"), Locality: b}, {ID: engine.IDOf("b-2"), Locality: b}, {ID: engine.IDOf("b-3"), Locality: b},
	})
	home := 0
	var d engine.Decision
	for range 10000 {
		if err := e.Decide(&engine.Query{}, &d); err != nil {
			fmt.Println(err)
			return
		}
		if d.Regime == engine.RegimeDirect {
			home++
		}
	}
	fmt.Println("stayed:", (home+50)/100, "%")
	fmt.Println(e.Explain(&engine.Query{}).Notes[1])
	// Output:
	// stayed: 50 %
	// locality a (the caller's): weight 1 of 1 available (1, effective 1), keeps 0.5 of its callers' queries
}
