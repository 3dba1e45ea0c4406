package serve

import (
	"cmp"
	"slices"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/health"
	"github.com/headroom-lb/headroom/host/observe"
)

// view is the body of GET /pool. Ages and latencies are in milliseconds; an unknown latency is null.
type view struct {
	Spec string `json:"spec"`
	trials
	Endpoints  []endpointView    `json:"endpoints"`
	Entries    []entryView       `json:"entries"`
	Fit        fitView           `json:"fit"`
	Attempts   attemptsView      `json:"attempts"`
	InFlight   int64             `json:"in_flight"`
	Decisions  map[string]uint64 `json:"decisions"`
	Fallbacks  map[string]uint64 `json:"fallbacks"`
	Outcomes   map[string]uint64 `json:"outcomes"`
	Probes     map[string]uint64 `json:"probes"`
	PoolEvents map[string]uint64 `json:"pool_events"`
	Errors     uint64            `json:"errors"`
	Traps      uint64            `json:"traps"`
}

// trials are the policies that run beside the one in force; null for none.
type trials struct {
	Canary     *canaryView     `json:"canary"`
	Comparison *comparisonView `json:"comparison"`
}

type canaryView struct {
	Spec  string  `json:"spec"`
	Share float64 `json:"share"` // of the queries, a part of one
}

// comparisonView is a comparison without its samples, which GET /compare has.
type comparisonView struct {
	Spec      string `json:"spec"`
	Decisions uint64 `json:"decisions"`
	Different uint64 `json:"different"`
	Missed    uint64 `json:"missed"`
	Failed    bool   `json:"failed"`
}

func newTrials(st *host.Stats) (t trials) {
	if c := st.Canary; c != nil {
		t.Canary = &canaryView{c.Spec, float64(c.Share) / perUnit}
	}
	if c := st.Comparison; c != nil {
		t.Comparison = &comparisonView{c.Spec, c.Decisions, c.Different, c.Missed, c.Failed}
	}
	return t
}

// endpointView is one endpoint: as configured, and as it has done lately. LastProbe is null for policies that probe
// nothing, and before the first probe.
type endpointView struct {
	Name      string     `json:"name"`
	URL       string     `json:"url"`
	Status    string     `json:"status"`
	Weight    uint32     `json:"weight,omitempty"`
	Priority  uint8      `json:"priority,omitempty"`
	Locality  string     `json:"locality,omitempty"`
	InFlight  int64      `json:"in_flight"`        // queries of this proxy
	Failing   bool       `json:"failing"`          // health took it out: its checks or queries fail
	Cause     string     `json:"cause,omitempty"`  // what keeps it out
	Reason    string     `json:"reason,omitempty"` // the same in words
	Panic     bool       `json:"panic,omitempty"`  // used in spite of it
	LastProbe *probeView `json:"last_probe"`
}

// entryView is one entry of a shard's pool: as ranked, and as the replica reported it.
type entryView struct {
	Shard        int      `json:"shard"`
	Endpoint     string   `json:"endpoint"`
	RIF          uint32   `json:"rif"`
	RawRIF       uint32   `json:"raw_rif"`
	LatencyMS    *float64 `json:"latency_ms"`
	RawLatencyMS *float64 `json:"raw_latency_ms"`
	AgeMS        float64  `json:"age_ms"`
	Uses         uint32   `json:"uses"`
	Eligible     bool     `json:"eligible"`
	Hot          bool     `json:"hot"`
}

type fitView struct {
	Pool         uint32  `json:"pool"`
	RemoveRate   float64 `json:"remove_rate"`
	ReuseBudget  float64 `json:"reuse_budget"`
	Threshold    *uint32 `json:"threshold"` // null: none, every entry is cold
	WindowFilled uint32  `json:"window_filled"`
	SmallFleet   bool    `json:"small_fleet"`
	Held         bool    `json:"held"`
	Probes       uint32  `json:"probes"` // of each query; 0 for a policy that does not probe for single queries
	Wait         uint32  `json:"wait"`   // answers that such a query waits for
}

func newView(b *host.Balancer, w *watch) view {
	st := b.Stats()
	v := view{
		Spec: b.Spec(), trials: newTrials(&st), InFlight: st.InFlight, Errors: st.Errors, Traps: st.Traps,
		Endpoints: []endpointView{}, Entries: []entryView{}, Attempts: w.attempts.view(),
		Decisions: map[string]uint64{}, Fallbacks: map[string]uint64{}, Outcomes: map[string]uint64{},
		Probes: map[string]uint64{
			"sent": st.Probes.Sent, "answered": st.Probes.Answered, "failed": st.Probes.Failed, "shed": st.Probes.Shed,
			"late": st.Probes.Late,
		},
		PoolEvents: observe.Events(&st.Counters),
		Fit: fitView{
			Pool: st.Fit.Pool, RemoveRate: float64(st.Fit.RemoveRate) / perUnit, ReuseBudget: float64(st.Fit.ReuseBudget) / perUnit,
			WindowFilled: st.Fit.WindowFilled, SmallFleet: st.Fit.Shrunk, Held: st.Fit.Held,
			Probes: st.Fit.Probes, Wait: st.Fit.Wait,
		},
	}
	if t := st.Fit.Threshold; t != engine.NoThreshold {
		v.Fit.Threshold = &t
	}
	for r, n := range st.ByRegime {
		v.Decisions[engine.Regime(r).String()] = n
	}
	for c, n := range st.ByCause {
		if name := engine.Cause(c).String(); name != "" {
			v.Fallbacks[name] = n
		}
	}
	for o, n := range st.Outcomes {
		v.Outcomes[engine.Outcome(o).String()] = n
	}
	verdicts := map[string]health.Verdict{}
	for _, verdict := range w.monitor.Verdicts() {
		verdicts[verdict.Name] = verdict
	}
	for _, e := range b.Endpoints() {
		ev := endpointView{
			Name: e.Name, URL: e.Addr, Status: e.Status.String(), Weight: e.Weight, Priority: e.Priority, Locality: e.Locality,
		}
		w.show(&ev, verdicts[e.Name])
		v.Endpoints = append(v.Endpoints, ev)
	}
	now := b.Now()
	for _, e := range b.Entries() {
		v.Entries = append(v.Entries, entryView{
			Shard: e.Shard, Endpoint: e.Endpoint, RIF: e.RIF, RawRIF: e.RawRIF,
			LatencyMS: latencyMS(e.Latency), RawLatencyMS: latencyMS(e.RawLatency),
			AgeMS: float64(now-e.At) / 1e6, Uses: e.Uses, Eligible: e.Eligible, Hot: e.Hot,
		})
	}
	slices.SortStableFunc(v.Entries, func(a, b entryView) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return v
}

// latencyMS is nil for a latency that is not known.
func latencyMS(d engine.Duration) *float64 {
	if d == engine.UnknownLatency {
		return nil
	}
	v := float64(d) / 1e6
	return &v
}
