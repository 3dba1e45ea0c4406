package policy_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
)

// With three choices of three, the idlest decides.
func ExamplePowerOfTwo() {
	e := trees("power_of_two seed=7 choices=3")
	_ = decide(e, engine.Query{Tried: []engine.ID{engine.IDOf("ash")}})
	_ = decide(e, engine.Query{Tried: []engine.ID{engine.IDOf("ash")}})
	fmt.Println(decide(e, engine.Query{}))
	// Output: ash
}
