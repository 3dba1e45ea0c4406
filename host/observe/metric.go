package observe

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Kind is what kind of metric it is.
type Kind string

// The kinds: counters only grow, but for a restart; gauges go up and down.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Group says who exports a metric.
type Group string

// The groups.
const (
	OfBalancer  Group = "balancer"  // read from the balancer at each scrape
	OfLatency   Group = "latency"   // observed at the end of each query
	OfEndpoints Group = "endpoints" // only on demand: see [Endpoints]
	OfProxy     Group = "proxy"     // around an HTTP handler
)

// Label is a label and all values that it takes; nil where they are bounded in another way.
type Label struct {
	Name   string
	Values []string
}

// Metric is one row of the table.
type Metric struct {
	Name   string // in Prometheus: headroom_ and so on
	Kind   Kind
	Group  Group
	Labels []Label
	Help   string // what it means, in one sentence
	Rises  string // what to do when it rises
	read   func(s *Snapshot, put Put)
}

// Put is given a value of a metric and the values of its labels, in the order of [Metric.Labels].
type Put = func(value float64, labels ...string)

// Read calls put once for each series of a metric of the groups [OfBalancer] and [OfEndpoints]; those of
// the others are not read but observed.
func (m *Metric) Read(s *Snapshot, put Put) {
	if m.read != nil {
		m.read(s, put)
	}
}

// LabelNames are the names of the labels, in order.
func (m *Metric) LabelNames() []string {
	names := make([]string, len(m.Labels))
	for i, l := range m.Labels {
		names[i] = l.Name
	}
	return names
}

// Series is how many series the metric has always; 0 if its labels are bounded in another way. A
// histogram's count as one.
func (m *Metric) Series() int {
	n := 1
	for _, l := range m.Labels {
		n *= len(l.Values)
	}
	return n
}

// Metrics is the table, in the order of the documentation.
func Metrics() []Metric { return slices.Clone(table) }

// Named finds the row of a metric; it panics if there is none.
func Named(name string) *Metric {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	panic("no metric is named " + name)
}

// Snapshot is what the metrics of a balancer are read from.
type Snapshot struct {
	host.Stats
	PoolEntries int
	ByStatus    [engine.StatusUnavailable + 1]int // endpoints
	ByEndpoint  []EndpointCounts                  // empty unless asked for
}

// Look reads a balancer, once for all metrics.
func Look(b *host.Balancer, e *Endpoints) *Snapshot {
	s := &Snapshot{Stats: b.Stats(), PoolEntries: len(b.Entries())}
	endpoints := b.Endpoints()
	for _, ep := range endpoints {
		s.ByStatus[ep.Status]++
	}
	if e != nil {
		s.ByEndpoint = e.read(endpoints)
	}
	return s
}

// The values of labels are the engine's own names, in the order of its numbers.
var (
	regimes  = names(engine.Regimes, func(i int) string { return engine.Regime(i).String() })
	causes   = names(engine.Causes, func(i int) string { return engine.Cause(i).String() })[1:]
	outcomes = names(int(engine.OutcomeCancelled)+1, func(i int) string { return engine.Outcome(i).String() })
	statuses = names(int(engine.StatusUnavailable)+1, func(i int) string { return engine.Status(i).String() })
	results  = []string{"answered", "failed", "shed"}
	events   = []string{
		"admitted", "replaced", "evicted_oldest", "dropped_stale", "removed_worst", "removed_oldest", "expired", "exhausted", "forgotten",
	}
	arms = []string{Arm(false), Arm(true)}
)

// Arm is the value of the label arm.
func Arm(canary bool) string {
	if canary {
		return "canary"
	}
	return "live"
}

// Events are the engine's counts of what happened to entries of the pool, by the values of the label event.
func Events(c *engine.Counters) map[string]uint64 {
	out := make(map[string]uint64, len(events))
	counts := c.Each() // the pool's come first
	for i, event := range events {
		out[event] = *counts[i]
	}
	return out
}

// LatencyBuckets are the upper bounds of the buckets of the group [OfLatency], in seconds.
func LatencyBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func names(n int, name func(int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = name(i)
	}
	return out
}

// one reads a metric without labels.
func one[N uint64 | uint32 | int64 | int | float64](f func(*Snapshot) N) func(*Snapshot, Put) {
	return func(s *Snapshot, put Put) { put(float64(f(s))) }
}

// each reads a metric with one label, whose values stand in the order of the counts.
func each[N uint64 | int](values []string, f func(*Snapshot) []N) func(*Snapshot, Put) {
	return func(s *Snapshot, put Put) {
		for i, n := range f(s) {
			put(float64(n), values[i])
		}
	}
}

// byArm reads a metric of both arms.
func byArm(f func(a *host.ArmStats, put Put)) func(*Snapshot, Put) {
	return func(s *Snapshot, put Put) {
		live := s.Live()
		for i, a := range []*host.ArmStats{&live, &s.Canaries} {
			f(a, func(v float64, labels ...string) { put(v, append([]string{arms[i]}, labels...)...) })
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
