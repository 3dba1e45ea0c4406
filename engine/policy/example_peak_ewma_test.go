package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// One slow answer is believed at once, and forgotten over tau.
func ExamplePeakEWMA() {
	p, err := policy.Parse("peak_ewma seed=7 initial=20ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	_ = e.SetCandidates(0, []engine.Candidate{{ID: 1}, {ID: 2}})
	_ = e.Report(1, engine.Report{ID: 1, Latency: 900 * engine.Millisecond})

	x := e.Explain(&engine.Query{Now: 2})
	fmt.Println("replica", x.Decision.ID, x.Because)
	x = e.Explain(&engine.Query{Now: engine.Instant(10 * engine.Second), Tried: []engine.ID{2}})
	fmt.Println("replica", x.Decision.ID, x.Because, "now at", x.Weighed[0].Load/1e6, "ms")
	// Output:
	// replica 2 costs no more than the other one drawn: 19.99 ms estimated, times 1 with this query in flight
	// replica 1 is the only open candidate now at 331 ms
}
