// Package prometheus exports a balancer's metrics to Prometheus. The names are those of the table in
// package observe. Who imports it gets github.com/prometheus/client_golang; who imports host does not.
package prometheus

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
)

// Option adjusts a collector.
type Option func(*collector)

// WithEndpoints adds the counts of the busiest endpoints by name.
func WithEndpoints(e *observe.Endpoints) Option { return func(c *collector) { c.endpoints = e } }

type collector struct {
	b         *host.Balancer
	endpoints *observe.Endpoints
	rows      []row
}

type row struct {
	metric observe.Metric
	desc   *prometheus.Desc
	kind   prometheus.ValueType
}

// NewCollector reads a balancer's own counts at each scrape; nothing is counted twice. To export several
// balancers, register each with prometheus.WrapRegistererWith and a label of your own.
func NewCollector(b *host.Balancer, opts ...Option) prometheus.Collector {
	c := &collector{b: b}
	for _, opt := range opts {
		opt(c)
	}
	for _, m := range observe.Metrics() {
		if m.Group == observe.OfBalancer || m.Group == observe.OfEndpoints && c.endpoints != nil {
			kind := prometheus.CounterValue
			if m.Kind == observe.Gauge {
				kind = prometheus.GaugeValue
			}
			c.rows = append(c.rows, row{m, prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil), kind})
		}
	}
	return c
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, r := range c.rows {
		ch <- r.desc
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := observe.Look(c.b, c.endpoints)
	for _, r := range c.rows {
		r.metric.Read(s, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(r.desc, r.kind, v, labels...)
		})
	}
}

// Instrument counts and times the requests that a handler answers, by status code.
func Instrument(reg prometheus.Registerer, next http.Handler) http.Handler {
	help := func(name string) string { return observe.Named(name).Help }
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headroom_requests_total", Help: help("headroom_requests_total"),
	}, []string{"code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "headroom_request_seconds", Help: help("headroom_request_seconds"),
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, nil)
	open := prometheus.NewGauge(prometheus.GaugeOpts{Name: "headroom_requests_open", Help: help("headroom_requests_open")})
	reg.MustRegister(requests, seconds, open)
	return promhttp.InstrumentHandlerInFlight(open,
		promhttp.InstrumentHandlerDuration(seconds, promhttp.InstrumentHandlerCounter(requests, next)))
}
