package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// The turn goes round; a tried replica is passed over.
func ExampleRoundRobin() {
	e := trees("round_robin seed=7")
	for range 4 {
		fmt.Print(decide(e, engine.Query{}), " ")
	}
	fmt.Println("and, not to ash:", decide(e, engine.Query{Tried: []engine.ID{engine.IDOf("ash")}}))
	// Output: birch cedar ash birch and, not to ash: cedar
}
