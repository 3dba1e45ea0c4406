package health_test

import (
	"context"
	"fmt"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/health"
)

// A circuit opens after five failed queries in a row. In an application the verdicts go to
// Balancer.SetStatus and SetEndpoints, and lbhttp.WithGate admits and reports.
func ExampleMonitor() {
	changes := make(chan health.Verdict, 1)
	m, err := health.New(health.Config{Circuit: &health.Circuit{}}, func(changed []health.Verdict) {
		for _, v := range changed {
			changes <- v
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	install := func([]health.Verdict) error { return nil }
	if err := m.SetEndpoints([]string{"a", "b", "c"}, install); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = m.Run(ctx) }()

	for range 5 {
		permit, ok := m.Admit("b")
		if !ok {
			break
		}
		m.Report("b", permit, engine.OutcomeFailure)
	}
	v := <-changes
	fmt.Println(v.Name, v.Status, v.Cause)
	// Output: b unavailable circuit
}
