package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A busy fast replica against an idle slow one.
func ExampleLinear() {
	for _, spec := range []string{"linear remove_rate=0", "linear remove_rate=0 lambda=0.9"} {
		p, err := policy.Parse(spec)
		if err != nil {
			fmt.Println(err)
			return
		}
		e := engine.New(p, engine.Config{})
		_ = e.SetCandidates(0, []engine.Candidate{{ID: 1}, {ID: 2}})
		_, _ = e.Record(0, 1, engine.Reading{RIF: 4, Latency: 20 * engine.Millisecond})
		_, _ = e.Record(0, 2, engine.Reading{RIF: 1, Latency: 300 * engine.Millisecond})
		x := e.Explain(&engine.Query{})
		fmt.Println("replica", x.Decision.ID, x.Because)
	}
	// Output:
	// replica 1 has the least sum (160 ms) of the 2 entries on offer: latency 20 ms, RIF 4 at 75 ms each, of which 0.5 counts
	// replica 2 has the least sum (97.5 ms) of the 2 entries on offer: latency 300 ms, RIF 1 at 75 ms each, of which 0.9 counts
}
