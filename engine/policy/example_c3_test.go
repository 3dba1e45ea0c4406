package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// Three times as fast is not worth twice the queue, cubed.
func ExampleC3() {
	p, err := policy.Parse("c3 clients=10 remove_rate=0")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	_ = e.SetCandidates(0, []engine.Candidate{{ID: 1}, {ID: 2}})
	_, _ = e.Record(0, 1, engine.Reading{RIF: 3, Latency: 20 * engine.Millisecond})
	_, _ = e.Record(0, 2, engine.Reading{RIF: 1, Latency: 60 * engine.Millisecond})
	_ = e.Report(0, engine.Report{ID: 2, Latency: 65 * engine.Millisecond})
	x := e.Explain(&engine.Query{})
	fmt.Println("replica", x.Decision.ID, x.Because)
	// Output:
	// replica 2 has the least score of the 2 entries on offer: 0 in flight here, times 10, and RIF 1 on average; reports 60 ms, answers this client in 65 ms
}
