package sim

import "github.com/headroom-lb/headroom/engine"

// ReplicaView is what can be seen of a replica from outside.
type ReplicaView struct {
	RIF     int
	Latency int64 // its own estimate at its present RIF, or -1 while it has none
	Busy    bool  // a neighbour takes everything beyond its allocation
	Old     bool  // its machine needs more work for the same query
	State   State
	Used    int64 // work done so far, ns of one core
	Area    int64 // sum of RIF over time so far, ns
}

// Replicas appends a view of every replica, in order.
func (w *World) Replicas(dst []ReplicaView) []ReplicaView {
	for i := range w.replicas {
		r := &w.replicas[i]
		area, used := r.account(w.now)
		dst = append(dst, ReplicaView{
			RIF: len(r.jobs), Latency: int64(r.reading(engine.Instant(w.now)).Latency),
			Busy: r.busy, Old: r.cost > whole, State: r.state, Used: used, Area: area,
		})
	}
	return dst
}

// Now is the instant up to which the world has run.
func (w *World) Now() int64 { return w.now }

// Scenario is the situation, with every change made since.
func (w *World) Scenario() Scenario { return w.sc }

// Spec is the policy of every client.
func (w *World) Spec() string { return w.spec }

// InFlight counts queries between arrival at their client and the answer's arrival there.
func (w *World) InFlight() int { return w.inFlight }

// Hash sums up every decision, reading and answer so far. Equal hashes mean equal runs.
func (w *World) Hash() uint64 { return w.hash }

// TrafficHash sums up every query's instant, client and work so far. Worlds of one scenario
// agree on it whatever their policies.
func (w *World) TrafficHash() uint64 { return w.traffic.hash }

// Recent appends latency quantiles over the last [WindowSpan], deadlines included; ranks are
// in parts per 10,000, ascending.
func (w *World) Recent(dst []int64, ranks ...uint64) []int64 {
	return w.latency.Quantiles(w.now, dst, ranks...)
}

// Overall is Recent over the whole run.
func (w *World) Overall(dst []int64, ranks ...uint64) []int64 {
	return w.run.Quantiles(dst, ranks...)
}

// Events counts what the world has served so far: arrivals, steps of queries and probes, ends,
// and what the fleet does by itself.
func (w *World) Events() uint64 { return w.events }
