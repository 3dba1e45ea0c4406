package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// The idlest decides, and equals take turns.
func ExampleLeastLoaded() {
	e := trees("least_loaded seed=7")
	first := decide(e, engine.Query{})
	fmt.Print(first, " ", decide(e, engine.Query{}), " ", decide(e, engine.Query{}), ", ")
	// All three have one query each, until the first one's ends.
	_ = e.Report(0, engine.Report{ID: engine.IDOf(first)})
	fmt.Println("then", decide(e, engine.Query{}) == first)
	// Output: birch cedar ash, then true
}
