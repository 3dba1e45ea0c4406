package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headroom-lb/headroom/host"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

// perUnit is the fixed-point unit of the engine's rates.
const perUnit = 10_000

// newRegistry gathers the balancer's metrics and this process's.
func newRegistry(b *host.Balancer) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(headroom.NewCollector(b), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
