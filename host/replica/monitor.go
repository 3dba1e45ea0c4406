package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// Monitor knows a replica's requests in flight and latencies. It is safe for concurrent use and
// must not be copied.
type Monitor struct {
	rif       atomic.Uint32
	start     time.Time // instants count from here, on the monotonic clock
	probePath string
	piggyback bool
	hints     func(hint string) int

	mu        sync.Mutex // guards the estimator; held for nanoseconds
	estimator *probe.Estimator
}

// Option adjusts a monitor.
type Option func(*Monitor)

// WithProbePath names the path at which the probe handler is mounted inside [Monitor.Middleware],
// so that probes are not counted; by default [DefaultPath]. GET and HEAD for exactly this path
// pass the middleware uncounted, whatever serves them.
func WithProbePath(path string) Option { return func(m *Monitor) { m.probePath = path } }

// WithPiggyback makes [Monitor.Middleware] put the reading on ordinary answers too, without the
// query that is being answered. Turn it on only behind a balancer that strips the headers
// before they reach users; lbhttp does.
func WithPiggyback() Option { return func(m *Monitor) { m.piggyback = true } }

// NewMonitor makes a monitor with nothing in flight. The zero configuration is the default one;
// a setting out of range is an [engine.ConfigError].
func NewMonitor(c probe.EstimatorConfig, opts ...Option) (*Monitor, error) {
	e, err := probe.NewEstimator(c)
	if err != nil {
		return nil, err
	}
	m := &Monitor{start: time.Now(), probePath: DefaultPath, estimator: e}
	for _, o := range opts {
		o(m)
	}
	return m, nil
}

// Query is one query in flight. End it exactly once, by Finish, Fail or Withdraw; further calls
// on the same variable do nothing. Do not copy it once begun.
//
//	q := m.Begin()
//	defer q.Finish()
type Query struct {
	m       *Monitor
	arrival probe.Arrival
}

// Begin counts a query in. It allocates nothing.
func (m *Monitor) Begin() Query {
	tag := m.rif.Add(1) - 1
	now := m.now()
	m.mu.Lock()
	a := m.estimator.Arrive(now, tag)
	m.mu.Unlock()
	return Query{m, a}
}

// Finish counts the query out and keeps its latency: it was answered.
func (q *Query) Finish() { q.end((*probe.Estimator).Finish) }

// Fail counts the query out as one that was not answered as it should: an error, a refusal, a
// caller who left. It never lowers the latency estimate.
func (q *Query) Fail() { q.end((*probe.Estimator).Fail) }

func (q *Query) end(keep func(*probe.Estimator, engine.Instant, probe.Arrival)) {
	if m := q.m; m != nil {
		now := m.now()
		m.mu.Lock()
		keep(m.estimator, now, q.arrival)
		m.mu.Unlock()
		q.leave()
	}
}

// Withdraw counts the query out and forgets it: its duration says nothing about latency.
func (q *Query) Withdraw() {
	if q.m != nil {
		q.hush()
		q.leave()
	}
}

// hush stops the query's age from counting as a latency while it stays in flight.
func (q *Query) hush() {
	q.m.mu.Lock()
	q.m.estimator.Withdraw(q.arrival)
	q.m.mu.Unlock()
}

func (q *Query) leave() {
	q.m.rif.Add(^uint32(0))
	q.m = nil
}

// RIF is the number of queries in flight now: one atomic load.
func (m *Monitor) RIF() uint32 { return m.rif.Load() }

// Reading is what a probe is told now: RIF, and the latency that a query arriving at this RIF
// may expect, or [engine.UnknownLatency]. Asked is left to whoever asks.
func (m *Monitor) Reading() engine.Reading { return m.reading(0) }

// reading leaves out so many queries of the caller's own.
func (m *Monitor) reading(own uint32) engine.Reading {
	rif := m.rif.Load()
	rif -= min(rif, own)
	now := m.now()
	m.mu.Lock()
	latency := m.estimator.Estimate(now, rif)
	m.mu.Unlock()
	return engine.Reading{RIF: rif, Latency: latency}
}

func (m *Monitor) now() engine.Instant { return engine.Instant(time.Since(m.start)) }
