package prometheus_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

func ExampleNewCollector() {
	latencies, top := headroom.NewLatencies(), observe.NewEndpoints(10)
	log := &observe.Log{Sample: 100}
	opts := append(log.Options(), host.WithObserver(latencies.Observe), host.WithObserver(top.Observe))
	b, err := host.NewNativeBalancer(policy.Parse, "prequal", opts...)
	if err != nil {
		panic(err)
	}
	defer b.Close(context.Background())
	if err := b.SetEndpoints([]host.Endpoint{{Name: "r1"}}); err != nil {
		panic(err)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(headroom.NewCollector(b, headroom.WithEndpoints(top)), latencies)

	p, err := b.Decide(context.Background(), host.Query{})
	if err != nil {
		panic(err)
	}
	p.Done(engine.OutcomeSuccess)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "headroom_endpoint_queries_total" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// other 0
	// r1 1
}
