package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// Every candidate is as likely as the others.
func ExampleRandom() {
	e := trees("random seed=7")
	counts := map[string]int{}
	for range 3000 {
		counts[decide(e, engine.Query{})]++
	}
	fmt.Println(counts["ash"] > 900, counts["birch"] > 900, counts["cedar"] > 900)
	// Output: true true true
}
