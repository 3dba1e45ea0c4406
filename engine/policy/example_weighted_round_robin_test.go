package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Two replicas serve alike, and one of them is twice as busy doing so.
func ExampleWeightedRoundRobin() {
	p, err := policy.NewWeightedRoundRobin(policy.DefaultWeightedRoundRobin(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	roomy, busy := engine.IDOf("roomy"), engine.IDOf("busy")
	if err := e.SetCandidates(0, []engine.Candidate{{ID: roomy}, {ID: busy}}); err != nil {
		fmt.Println(err)
		return
	}
	count := func(now engine.Instant) (n [2]int) {
		for range 300 {
			var d engine.Decision
			if err := e.Decide(&engine.Query{Now: now}, &d); err != nil {
				fmt.Println(err)
				return n
			}
			n[d.Index]++
		}
		return n
	}
	now := engine.Instant(0)
	for range 11 { // a report a second, for longer than the blackout
		_ = e.RecordLoad(now, roomy, engine.LoadReport{Utilization: 4000, QPS: 100000})
		_ = e.RecordLoad(now, busy, engine.LoadReport{Utilization: 8000, QPS: 100000})
		if now == 0 {
			fmt.Println("blackout:", count(now))
		}
		now += engine.Instant(engine.Second)
	}
	fmt.Println("weighted:", count(now))
	// Output:
	// blackout: [150 150]
	// weighted: [200 100]
}
