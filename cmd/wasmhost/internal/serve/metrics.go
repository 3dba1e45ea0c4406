package serve

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/health"
)

// Every metric has a fixed number of series, whatever the fleet: labels are regimes, causes, outcomes and the like,
// never endpoints or paths.
var (
	decisionsDesc   = desc("decisions_total", "Queries placed, by the branch of the rule that placed them.", "regime")
	fallbacksDesc   = desc("fallbacks_total", "Decisions that fell back, by cause.", "cause")
	errorsDesc      = desc("decide_errors_total", "Queries that could not be placed.")
	outcomesDesc    = desc("outcomes_total", "How placed queries ended.", "outcome")
	inFlightDesc    = desc("in_flight", "Placements that are open.")
	probesDesc      = desc("probes_total", "Probes, by what became of them.", "result")
	trapsDesc       = desc("traps_total", "Guest calls that failed; each cost an instance, not a query.")
	poolEventsDesc  = desc("pool_events_total", "What happened to entries of the probe pool.", "event")
	poolEntriesDesc = desc("pool_entries", "Entries in the probe pool, over all shards.")
	poolBoundDesc   = desc("pool_bound", "Entries that the probe pool of a shard may hold for the present fleet.")
	budgetDesc      = desc("reuse_budget", "Mean uses per entry in force for the present fleet.")
	removeDesc      = desc("remove_rate", "Entries removed per query in force for the present fleet.")
	shrunkDesc      = desc("small_fleet", "1 while the small-fleet rule is in force.")
	endpointsDesc   = desc("endpoints", "Endpoints, by status.", "status")
	checksDesc      = desc("health_checks_total", "Health checks, by result.", "result")
	openedDesc      = desc("circuits_opened_total", "Circuits that opened because queries failed.")
	ejectedDesc     = desc("outliers_ejected_total", "Endpoints ejected because they failed more often than the fleet.")
	outDesc         = desc("endpoints_out", "Endpoints that are not fit, by what keeps them out.", "cause")
	panicDesc       = desc("panic", "1 while too few endpoints are fit, so that all are used.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("headroom_"+name, help, labels, nil)
}

// perUnit is the fixed-point unit of the engine's rates.
const perUnit = 10_000

// collector reads a balancer's own counts at each scrape; nothing is counted twice.
type collector struct {
	b *host.Balancer
	m *health.Monitor
}

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		decisionsDesc, fallbacksDesc, errorsDesc, outcomesDesc, inFlightDesc, probesDesc, trapsDesc, poolEventsDesc,
		poolEntriesDesc, poolBoundDesc, budgetDesc, removeDesc, shrunkDesc, endpointsDesc,
		checksDesc, openedDesc, ejectedDesc, outDesc, panicDesc,
	} {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := c.b.Stats()
	for r, n := range st.ByRegime {
		count(decisionsDesc, n, engine.Regime(r).String())
	}
	for cause, n := range st.ByCause {
		if name := engine.Cause(cause).String(); name != "" {
			count(fallbacksDesc, n, name)
		}
	}
	for o, n := range st.Outcomes {
		count(outcomesDesc, n, engine.Outcome(o).String())
	}
	count(errorsDesc, st.Errors)
	gauge(inFlightDesc, float64(st.InFlight))
	count(probesDesc, st.Probes.Answered, "answered")
	count(probesDesc, st.Probes.Failed, "failed")
	count(probesDesc, st.Probes.Shed, "shed")
	count(trapsDesc, st.Traps)
	for name, n := range poolEvents(st.Counters) {
		count(poolEventsDesc, n, name)
	}
	gauge(poolEntriesDesc, float64(len(c.b.Entries())))
	gauge(poolBoundDesc, float64(st.Fit.Pool))
	gauge(budgetDesc, float64(st.Fit.ReuseBudget)/perUnit)
	gauge(removeDesc, float64(st.Fit.RemoveRate)/perUnit)
	gauge(shrunkDesc, oneIf(st.Fit.Shrunk))

	byStatus := map[engine.Status]int{}
	for _, e := range c.b.Endpoints() {
		byStatus[e.Status]++
	}
	for _, s := range []engine.Status{engine.StatusReady, engine.StatusDraining, engine.StatusUnavailable} {
		gauge(endpointsDesc, float64(byStatus[s]), s.String())
	}

	hc := c.m.Counts()
	count(checksDesc, hc.Passed, "passed")
	count(checksDesc, hc.Failed, "failed")
	count(openedDesc, hc.Opened)
	count(ejectedDesc, hc.Ejected)
	for _, cause := range health.Causes() {
		gauge(outDesc, float64(hc.Out[cause]), cause.String())
	}
	gauge(panicDesc, oneIf(hc.Panic))
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// poolEvents names the engine's counts of what happened to entries.
func poolEvents(c engine.Counters) map[string]uint64 {
	return map[string]uint64{
		"admitted": c.Admitted, "replaced": c.Replaced, "evicted_oldest": c.EvictedOldest, "dropped_stale": c.DroppedStale,
		"removed_worst": c.RemovedWorst, "removed_oldest": c.RemovedOldest, "expired": c.Expired, "exhausted": c.Exhausted,
		"forgotten": c.Forgotten,
	}
}

// newRegistry gathers the balancer's metrics, this process's, and those of the proxy's requests.
func newRegistry(b *host.Balancer, m *health.Monitor) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{b, m}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// instrument counts and times the proxy's requests by status code.
func instrument(reg *prometheus.Registry, next http.Handler) http.Handler {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headroom_requests_total", Help: "Requests answered by the proxy, by status code.",
	}, []string{"code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "headroom_request_seconds", Help: "Time from a request's arrival to the end of its answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, nil)
	open := prometheus.NewGauge(prometheus.GaugeOpts{Name: "headroom_requests_open", Help: "Requests that are not answered yet."})
	reg.MustRegister(requests, seconds, open)
	return promhttp.InstrumentHandlerInFlight(open,
		promhttp.InstrumentHandlerDuration(seconds, promhttp.InstrumentHandlerCounter(requests, next)))
}
