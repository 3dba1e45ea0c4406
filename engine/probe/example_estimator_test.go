package probe_test

import (
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// A replica answers for the load it has now, from queries that met a load like it.
func ExampleEstimator() {
	e, err := probe.NewEstimator(probe.EstimatorConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := engine.Instant(0)
	fmt.Println("at first:", e.Estimate(now, 0))

	for range 9 {
		calm := e.Arrive(now, 0) // nobody else is in flight
		now += engine.Instant(20 * engine.Millisecond)
		e.Finish(now, calm)

		busy := e.Arrive(now, 12) // twelve others are
		now += engine.Instant(90 * engine.Millisecond)
		e.Finish(now, busy)
	}
	fmt.Println("near RIF 1:", e.Estimate(now, 1)/engine.Millisecond, "ms")
	fmt.Println("near RIF 11:", e.Estimate(now, 11)/engine.Millisecond, "ms")
	now += engine.Instant(30 * engine.Second)
	fmt.Println("idle for half a minute:", e.Estimate(now, 0))
	// Output:
	// at first: -1
	// near RIF 1: 20 ms
	// near RIF 11: 90 ms
	// idle for half a minute: -1
}
