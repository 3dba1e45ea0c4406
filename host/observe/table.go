package observe

import (
	"math"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// perUnit is the fixed-point unit of the engine's rates and shares.
const perUnit = 10_000

// table has every metric. A name, once published, stays; a help text is one sentence; what to do is
// short and says where to look next.
var table = []Metric{
	{Name: "headroom_decisions_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"regime", regimes}},
		Help:  "Queries placed, by the branch of the rule that placed them.",
		Rises: "`hot` says that every entry on offer is loaded above the usual: the fleet is short of capacity, or the quantile is low. For `fallback` see the next row. `spill` and `panic` say that the preferred group, or nearly the whole fleet, is out.",
		read:  each(regimes, func(s *Snapshot) []uint64 { return s.ByRegime[:] })},
	{Name: "headroom_fallbacks_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"cause", causes}},
		Help:  "Decisions that fell back, by cause.",
		Rises: "`empty` or `thin`: the pool had no entry on offer, or fewer than `min_pool`. Look at the probes: if `failed` rises, mend those; if `shed` does, they are due faster than replicas answer; if neither does, there are too few queries to probe by, which does no harm. `trap`: the guest failed and the host decided; the log says why. Some at start are usual.",
		read:  each(causes, func(s *Snapshot) []uint64 { return s.ByCause[1:] })},
	{Name: "headroom_decide_errors_total", Kind: Counter, Group: OfBalancer,
		Help:  "Queries that could not be placed.",
		Rises: "No endpoint was to be had: all were tried, draining or unavailable, there are none, or the caller's time was up. Compare `headroom_endpoints`.",
		read:  one(func(s *Snapshot) uint64 { return s.Errors })},
	{Name: "headroom_outcomes_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"outcome", outcomes}},
		Help:  "How placed queries ended.",
		Rises: "`failure`: replicas answer with errors, or not at all; see which in the health view or by `headroom_endpoint_failures_total`. `overloaded`: they shed load, add capacity. `cancelled`: callers give up, look at the latency.",
		read:  each(outcomes, func(s *Snapshot) []uint64 { return s.Outcomes[:] })},
	{Name: "headroom_in_flight", Kind: Gauge, Group: OfBalancer,
		Help:  "Placements that are open.",
		Rises: "More traffic or slower answers; compare the rate of decisions. If it never falls, a caller does not end its placements.",
		read:  one(func(s *Snapshot) int64 { return s.InFlight })},

	{Name: "headroom_endpoints", Kind: Gauge, Group: OfBalancer, Labels: []Label{{"status", statuses}},
		Help:  "Endpoints, by status.",
		Rises: "`unavailable` or `draining` beyond a roll-out: see why health or discovery took them out. A fall of the sum: discovery lost some.",
		read:  each(statuses, func(s *Snapshot) []int { return s.ByStatus[:] })},
	{Name: "headroom_pool_entries", Kind: Gauge, Group: OfBalancer,
		Help:  "Entries in the probe pool, over all shards.",
		Rises: "Nothing to do. A fall towards `min_pool` comes before fallbacks: look at the probes.",
		read:  one(func(s *Snapshot) int { return s.PoolEntries })},
	{Name: "headroom_pool_bound", Kind: Gauge, Group: OfBalancer,
		Help:  "Entries that the probe pool of a shard may hold for the present fleet.",
		Rises: "It follows the number of eligible endpoints.",
		read:  one(func(s *Snapshot) uint32 { return s.Fit.Pool })},
	{Name: "headroom_pool_events_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"event", events}},
		Help:  "What happened to entries of the probe pool.",
		Rises: "`expired`: readings die of age before they are used, probe less or hold them longer. `exhausted`: entries are used up before they age, probe more. `dropped_stale`: answers overtake each other or come late. `forgotten`: queries or probes fail. The others follow the traffic.",
		read: func(s *Snapshot, put Put) {
			counts := s.Counters.Each() // the pool's come first
			for i, event := range events {
				put(float64(*counts[i]), event)
			}
		}},
	{Name: "headroom_reuse_budget", Kind: Gauge, Group: OfBalancer,
		Help:  "Mean uses per entry in force for the present fleet.",
		Rises: "The fleet shrank, so that entries must serve longer; raise `probe_rate` if decisions get worse.",
		read:  one(func(s *Snapshot) float64 { return float64(s.Fit.ReuseBudget) / perUnit })},
	{Name: "headroom_remove_rate", Kind: Gauge, Group: OfBalancer,
		Help:  "Entries removed per query in force for the present fleet.",
		Rises: "It follows the number of eligible endpoints.",
		read:  one(func(s *Snapshot) float64 { return float64(s.Fit.RemoveRate) / perUnit })},
	{Name: "headroom_small_fleet", Kind: Gauge, Group: OfBalancer,
		Help:  "1 while the small-fleet rule is in force.",
		Rises: "Few endpoints are eligible; expected for a small fleet, else see `headroom_endpoints`.",
		read:  one(func(s *Snapshot) int { return flag(s.Fit.Shrunk) })},
	{Name: "headroom_budget_held", Kind: Gauge, Group: OfBalancer,
		Help:  "1 while the fleet is outside what the settings were made for and the last good budget serves.",
		Rises: "With `fit=strict` the fleet shrank too far: bring endpoints back, or use `fit=auto`.",
		read:  one(func(s *Snapshot) int { return flag(s.Fit.Held) })},
	{Name: "headroom_threshold", Kind: Gauge, Group: OfBalancer,
		Help:  "Requests in flight above which an entry is hot, of the first shard; +Inf while there is no threshold.",
		Rises: "The fleet as a whole is busier. Compare with what a replica can take.",
		read: one(func(s *Snapshot) float64 {
			if s.Fit.Threshold == engine.NoThreshold {
				return math.Inf(1)
			}
			return float64(s.Fit.Threshold)
		})},
	{Name: "headroom_window_readings", Kind: Gauge, Group: OfBalancer,
		Help:  "Readings in the window that the threshold comes from, of the first shard.",
		Rises: "Nothing to do. While it is near 0 the threshold means little: look at the probes.",
		read:  one(func(s *Snapshot) uint32 { return s.Fit.WindowFilled })},
	{Name: "headroom_readings_total", Kind: Counter, Group: OfBalancer,
		Help:  "Readings that the live policy was given, by probes and by ordinary answers.",
		Rises: "It follows the traffic. If it stands still while probes are answered, nobody records what they say.",
		read:  one(func(s *Snapshot) uint64 { return s.Counters.Readings })},

	{Name: "headroom_probes_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"result", results}},
		Help:  "Probes, by what became of them.",
		Rises: "`failed`: replicas do not answer in time, or not in a form that is understood; the pool view shows the last error. `shed`: not sent, as the prober or the replica had its hands full; lower `probe_rate`, or find out why answers take long.",
		read: func(s *Snapshot, put Put) {
			for i, n := range []uint64{s.Probes.Answered, s.Probes.Failed, s.Probes.Shed} {
				put(float64(n), results[i])
			}
		}},
	{Name: "headroom_probes_sent_total", Kind: Counter, Group: OfBalancer,
		Help:  "Probes sent.",
		Rises: "It follows the traffic times `probe_rate`. What is sent and not yet answered or failed is under way.",
		read:  one(func(s *Snapshot) uint64 { return s.Probes.Sent })},
	{Name: "headroom_probes_late_total", Kind: Counter, Group: OfBalancer,
		Help:  "Answers to probes that came after the query they were sent for had been placed.",
		Rises: "Synchronous policies only: replicas answer slower than queries wait. Raise the probe wait, or lower `wait`.",
		read:  one(func(s *Snapshot) uint64 { return s.Probes.Late })},

	{Name: "headroom_traps_total", Kind: Counter, Group: OfBalancer,
		Help:  "Guest calls that failed; each cost an instance, not a query.",
		Rises: "The module is broken: read the log, roll back, and keep a recording of the last seconds for whoever wrote it.",
		read:  one(func(s *Snapshot) uint64 { return s.Traps })},
	{Name: "headroom_rebuilds_total", Kind: Counter, Group: OfBalancer,
		Help:  "Guests that took the place of one that had failed.",
		Rises: "It follows the traps. If it stays behind them, new guests do not start either and queries fall back.",
		read:  one(func(s *Snapshot) uint64 { return s.Rebuilds })},
	{Name: "headroom_slow_decisions_total", Kind: Counter, Group: OfBalancer,
		Help:  "Decisions of foreign guests that took too long.",
		Rises: "The module needs too much time for this fleet, or the machine has too few processors. A guest that takes 10 ms or more eight times, or for more than one decision in 64, is replaced, which counts as a trap.",
		read:  one(func(s *Snapshot) uint64 { return s.Slow })},
	{Name: "headroom_swaps_total", Kind: Counter, Group: OfBalancer,
		Help:  "Changes of the live policy: swaps, promotions and rollbacks of swaps.",
		Rises: "Somebody changed it; the log says from what to what. Compare latency and failures before and after.",
		read:  one(func(s *Snapshot) uint64 { return s.Swaps })},
	{Name: "headroom_generation", Kind: Gauge, Group: OfBalancer,
		Help:  "Number of the live policy; it grows with every swap and canary.",
		Rises: "As above. Proxies that differ in it do not run the same policy.",
		read:  one(func(s *Snapshot) uint64 { return s.Generation })},
	{Name: "headroom_shards", Kind: Gauge, Group: OfBalancer,
		Help:  "Shards of the balancer.",
		Rises: "It is a setting.",
		read:  one(func(s *Snapshot) int { return s.Shards })},

	{Name: "headroom_canary_share", Kind: Gauge, Group: OfBalancer,
		Help:  "Part of the queries that a canary gets, from 0 to 1; 0 if none runs.",
		Rises: "Somebody gave it more. Compare the arms before the next step.",
		read: one(func(s *Snapshot) float64 {
			if s.Canary == nil {
				return 0
			}
			return float64(s.Canary.Share) / perUnit
		})},
	{Name: "headroom_arm_decisions_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"arm", arms}, {"regime", regimes}},
		Help:  "Queries placed, by arm and branch of the rule; the canary's are those of all canaries.",
		Rises: "More `fallback` on the canary than on the live arm is usual in its first seconds and a fault later.",
		read: byArm(func(a *host.ArmStats, put Put) {
			for i, n := range a.ByRegime {
				put(float64(n), regimes[i])
			}
		})},
	{Name: "headroom_arm_outcomes_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"arm", arms}, {"outcome", outcomes}},
		Help:  "How placed queries ended, by arm.",
		Rises: "If the canary's part of `failure` or `overloaded` is above the live arm's, roll back.",
		read: byArm(func(a *host.ArmStats, put Put) {
			for i, n := range a.Outcomes {
				put(float64(n), outcomes[i])
			}
		})},
	{Name: "headroom_arm_in_flight", Kind: Gauge, Group: OfBalancer, Labels: []Label{{"arm", arms}},
		Help:  "Placements that are open, by arm.",
		Rises: "If the canary's rises faster than its share, its queries take longer.",
		read:  byArm(func(a *host.ArmStats, put Put) { put(float64(a.InFlight)) })},
	{Name: "headroom_arm_traps_total", Kind: Counter, Group: OfBalancer, Labels: []Label{{"arm", arms}},
		Help:  "Guest calls that failed, by arm.",
		Rises: "On the canary: roll back. On the live arm: see `headroom_traps_total`.",
		read:  byArm(func(a *host.ArmStats, put Put) { put(float64(a.Traps)) })},

	{Name: "headroom_compared_decisions_total", Kind: Counter, Group: OfBalancer,
		Help:  "Decisions that were made by the compared policy too; it starts anew with each comparison.",
		Rises: "Nothing to do; each costs a second decision.",
		read: one(func(s *Snapshot) uint64 {
			if s.Comparison == nil {
				return 0
			}
			return s.Comparison.Decisions
		})},
	{Name: "headroom_compared_different_total", Kind: Counter, Group: OfBalancer,
		Help:  "Decisions that the compared policy made otherwise.",
		Rises: "Expected between two policies; between two builds of one it is a regression: read the report's examples.",
		read: one(func(s *Snapshot) uint64 {
			if s.Comparison == nil {
				return 0
			}
			return s.Comparison.Different
		})},
	{Name: "headroom_compared_missed_total", Kind: Counter, Group: OfBalancer,
		Help:  "Decisions that the compared policy did not make, because it had fallen behind.",
		Rises: "It is slower than the traffic: what is reported of it is a sample, and as the live policy it would hold queries up.",
		read: one(func(s *Snapshot) uint64 {
			if s.Comparison == nil {
				return 0
			}
			return s.Comparison.Missed
		})},
	{Name: "headroom_comparison_failed", Kind: Gauge, Group: OfBalancer,
		Help:  "1 while a comparison is known to have ended by a failure of the compared policy's machine.",
		Rises: "Do not swap to it; the report says what failed.",
		read:  one(func(s *Snapshot) int { return flag(s.Comparison != nil && s.Comparison.Failed) })},

	{Name: "headroom_recorder_segments_total", Kind: Counter, Group: OfBalancer,
		Help:  "Segments of a recording that were finished.",
		Rises: "About one each second for each shard with traffic.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.Segments) })},
	{Name: "headroom_recorder_bytes_total", Kind: Counter, Group: OfBalancer,
		Help:  "Bytes of the segments that were finished.",
		Rises: "It follows the traffic; record a sample if a sink cannot take it.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.Bytes) })},
	{Name: "headroom_recorder_kept_segments", Kind: Gauge, Group: OfBalancer,
		Help:  "Segments that a dump would hold now.",
		Rises: "It is bounded by the time and the memory given.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.Kept) })},
	{Name: "headroom_recorder_kept_bytes", Kind: Gauge, Group: OfBalancer,
		Help:  "Memory of the segments that a dump would hold now.",
		Rises: "At its bound the oldest go early, and a dump reaches less far back: give more memory or sample.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.KeptBytes) })},
	{Name: "headroom_recorder_anomalies_total", Kind: Counter, Group: OfBalancer,
		Help:  "Anomalies that the recorder told of: segments full of fallbacks, and failed machines.",
		Rises: "Dump the recording and replay it: it says what every decision knew.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.Anomalies) })},
	{Name: "headroom_recorder_sink_lost_total", Kind: Counter, Group: OfBalancer,
		Help:  "Segments kept that the recorder's sink did not get: it had fallen behind, or failed.",
		Rises: "The sink is slower than the traffic: record a sample, or give it a faster disk. Decisions do not wait for it.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(r.SinkLost) })},
	{Name: "headroom_recorder_sink_failed", Kind: Gauge, Group: OfBalancer,
		Help:  "1 since the recorder's sink refused a segment; nothing was written to it since.",
		Rises: "The disk is full or the sink has gone. Recording in memory goes on; a new sink needs a new balancer.",
		read:  recorder(func(r *host.RecorderStats) float64 { return float64(flag(r.SinkError != nil)) })},

	{Name: "headroom_query_seconds", Kind: Histogram, Group: OfLatency, Labels: []Label{{"arm", arms}, {"outcome", outcomes}},
		Help:  "Time from a query's placement to its end, by arm and outcome; every attempt counts.",
		Rises: "With `hot` decisions: too little capacity. On one arm only: that policy. Else compare what replicas report of themselves."},

	{Name: "headroom_endpoint_queries_total", Kind: Counter, Group: OfEndpoints, Labels: []Label{{"endpoint", nil}},
		Help:  "Queries placed on the endpoints that get most; the rest together are other.",
		Rises: "One that gets far more than its share: see whether it fails fast, or reports a load that is too small.",
		read: func(s *Snapshot, put Put) {
			for _, e := range s.ByEndpoint {
				put(float64(e.Queries), e.Endpoint)
			}
		}},
	{Name: "headroom_endpoint_failures_total", Kind: Counter, Group: OfEndpoints, Labels: []Label{{"endpoint", nil}},
		Help:  "Queries that failed or were refused for load by the endpoints that get most; the rest together are other.",
		Rises: "Take that one out and look at its log.",
		read: func(s *Snapshot, put Put) {
			for _, e := range s.ByEndpoint {
				put(float64(e.Failures), e.Endpoint)
			}
		}},

	{Name: "headroom_requests_total", Kind: Counter, Group: OfProxy, Labels: []Label{{"code", nil}},
		Help:  "Requests answered by the proxy, by status code.",
		Rises: "502: replicas gave no answer that can be passed on. 503: nobody was eligible. 504: time ran out. Others are the replicas' own."},
	{Name: "headroom_request_seconds", Kind: Histogram, Group: OfProxy,
		Help:  "Time from a request's arrival to the end of its answer.",
		Rises: "If `headroom_query_seconds` does not rise with it, retries or slow clients are the reason."},
	{Name: "headroom_requests_open", Kind: Gauge, Group: OfProxy,
		Help:  "Requests that are not answered yet.",
		Rises: "As `headroom_in_flight`; upgraded connections count for as long as they last."},
}

func recorder(f func(*host.RecorderStats) float64) func(*Snapshot, Put) {
	return one(func(s *Snapshot) float64 {
		if s.Recorder == nil {
			return 0
		}
		return f(s.Recorder)
	})
}
