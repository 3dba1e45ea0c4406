package prometheus_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

// BenchmarkObserved is a decision and its end with nobody, with the histogram, and with all observers.
func BenchmarkObserved(b *testing.B) {
	latencies, top := headroom.NewLatencies(), observe.NewEndpoints(10)
	for _, c := range []struct {
		name string
		opts []host.Option
	}{
		{"nobody", nil},
		{"latencies", []host.Option{host.WithObserver(latencies.Observe)}},
		{"endpoints", []host.Option{host.WithObserver(top.Observe)}},
		{"silent log", (&observe.Log{Sample: 100}).Options()},
	} {
		b.Run(c.name, func(b *testing.B) {
			lb := benched(b, 64, c.opts...)
			b.ReportAllocs()
			for b.Loop() {
				p, err := lb.Decide(ctx, host.Query{})
				if err != nil {
					b.Fatal(err)
				}
				p.Done(engine.OutcomeSuccess)
			}
		})
	}
}

// BenchmarkScrape is one scrape; it looks at each endpoint's status, and at each shard once.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{8, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			reg := prometheus.NewRegistry()
			reg.MustRegister(headroom.NewCollector(benched(b, n)))
			for b.Loop() {
				if _, err := reg.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benched(b *testing.B, n int, opts ...host.Option) *host.Balancer {
	b.Helper()
	lb, err := host.NewNativeBalancer(policy.Parse, "prequal seed=1", opts...)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, lb.Close(ctx)) })
	eps := make([]host.Endpoint, n)
	for i := range eps {
		eps[i].Name = fmt.Sprintf("r%d", i)
	}
	require.NoError(b, lb.SetEndpoints(eps))
	return lb
}
