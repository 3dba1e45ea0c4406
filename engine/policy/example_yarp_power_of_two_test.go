package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Everyone is asked once per interval; of two drawn the one that said the lower RIF serves.
func ExampleYARPPowerOfTwo() {
	p, err := policy.Parse("yarp_power_of_two seed=7 poll=500ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	_ = e.SetCandidates(0, []engine.Candidate{{ID: 1}, {ID: 2}})

	due, _ := e.Probes(0, nil)
	fmt.Println("due:", due)
	for i, id := range due {
		_, _ = e.Record(1000, id, engine.Reading{RIF: uint32(9 - 4*i), Asked: 500})
	}
	x := e.Explain(&engine.Query{Now: engine.Instant(300 * engine.Millisecond)})
	fmt.Println("replica", x.Decision.ID, x.Because+";", x.Notes[0])
	// Output:
	// due: [1 2]
	// replica 2 has no more requests in flight, as last reported (5) than the other one drawn; it reported 299.99 ms ago
}
