package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

// A replica with three times the weight owns three times the keys, and raising a weight takes
// keys from others without moving any between them.
func ExampleWeightedRendezvous() {
	p, err := policy.Parse("weighted_rendezvous seed=7")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := engine.New(p, engine.Config{})
	small, large := engine.IDOf("small"), engine.IDOf("large")
	owners := func(weight engine.Weight) map[engine.Key]engine.ID {
		if err := e.SetCandidates(0, []engine.Candidate{{ID: small, Weight: 1}, {ID: large, Weight: weight}}); err != nil {
			fmt.Println(err)
		}
		owner := map[engine.Key]engine.ID{}
		for key := engine.Key(1); key <= 100000; key++ {
			var d engine.Decision
			_ = e.Decide(&engine.Query{Key: key}, &d)
			owner[key] = d.ID
		}
		return owner
	}
	before, after := owners(3), owners(4)
	count, back := 0, 0
	for key, id := range before {
		if id == large {
			count++
			if after[key] != large {
				back++
			}
		}
	}
	fmt.Printf("%.0f %% of the keys at weight 3; with more weight it loses %d\n", float64(count)/1000, back)
	// Output: 75 % of the keys at weight 3; with more weight it loses 0
}
