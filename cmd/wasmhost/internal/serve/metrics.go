package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/host/health"
)

// perUnit is the fixed-point unit of the engine's rates.
const perUnit = 10_000

// What health says, beside what the balancer does: a fixed number of series, whatever the fleet.
var (
	checksDesc  = desc("health_checks_total", "Health checks, by result.", "result")
	openedDesc  = desc("circuits_opened_total", "Circuits that opened because queries failed.")
	ejectedDesc = desc("outliers_ejected_total", "Endpoints ejected because they failed more often than the fleet.")
	outDesc     = desc("endpoints_out", "Endpoints that are not fit, by what keeps them out.", "cause")
	panicDesc   = desc("panic", "1 while too few endpoints are fit, so that all are used.")
)

// What the transport says of attempts beyond the first.
var (
	retriesDesc = desc("retries_total", "Attempts after one that failed, by whether the budget allowed them.", "result")
	hedgesDesc  = desc("hedges_total", "Attempts beside one that was slow, by what became of them.", "result")
)

// What stands before the proxy says of its clients.
var (
	connectionsDesc = desc("connections", "Connections of clients that are open.")
	refusedDesc     = desc("refused_total", "Clients that were turned away before their request went to an endpoint, or cut off, by reason.", "reason")
	expiryDesc      = desc("certificate_expiry_seconds", "When the certificate of the listener expires, in seconds since 1970.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("headroom_"+name, help, labels, nil)
}

// healthCollector reads a monitor's own counts at each scrape.
type healthCollector struct{ m *health.Monitor }

func (c healthCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{checksDesc, openedDesc, ejectedDesc, outDesc, panicDesc} {
		ch <- d
	}
}

func (c healthCollector) Collect(ch chan<- prometheus.Metric) {
	say := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	counts := c.m.Counts()
	say(checksDesc, prometheus.CounterValue, float64(counts.Passed), "passed")
	say(checksDesc, prometheus.CounterValue, float64(counts.Failed), "failed")
	say(openedDesc, prometheus.CounterValue, float64(counts.Opened))
	say(ejectedDesc, prometheus.CounterValue, float64(counts.Ejected))
	for _, cause := range health.Causes() {
		say(outDesc, prometheus.GaugeValue, float64(counts.Out[cause]), cause.String())
	}
	panics := 0.0
	if counts.Panic {
		panics = 1
	}
	say(panicDesc, prometheus.GaugeValue, panics)
}

// edgeCollector reads the listener's counts at each scrape.
type edgeCollector struct{ e *edge.Edge }

func (c edgeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connectionsDesc, refusedDesc, expiryDesc} {
		ch <- d
	}
}

func (c edgeCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(c.e.Open()))
	for _, r := range edge.Reasons() {
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(c.e.Refused(r)), r.String())
	}
	if shown := c.e.Certificates(); shown != nil {
		ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(shown.Expires().Unix()))
	}
}

// newRegistry gathers this process's metrics; routes and the listener add theirs.
func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
