package lbhttp

import "github.com/headroom-lb/headroom/engine"

// maxAnswer bounds what is read of a probe's answer, in bytes: the body, and any header.
const maxAnswer = 4096

const second, milli, micro, nano = engine.Second, engine.Millisecond, engine.Microsecond, engine.Nanosecond

// alias is a name under which some program reports a latency, and what a value of 1 means there.
type alias struct {
	name string
	unit engine.Duration
}

// dialect is a name for RIF and the names of the latency that go with it, the first known one
// counting. Zero is taken as unknown in every dialect: most programs say 0 before their first
// sample, and a replica believed to answer in no time would get all the traffic.
type dialect struct {
	rif     string
	latency []alias
}

// headerDialects, in the order in which they are looked for. Names in canonical form.
var headerDialects = []dialect{
	{"X-Prequal-Rif", []alias{{"X-Prequal-Latency-Us", micro}}}, // ours, prequal-rs, envoy-prequal
	{"X-In-Flight", []alias{{"X-Estimated-Latency", milli}}},    // libvmod-prequal
	{"X-Requests-In-Flight", []alias{{"X-Latency-Estimate-Ms", milli}}},
	{"X-Rif", []alias{{"X-Latency-Estimate", milli}}},
}

// loadDialect is looked for in an ORCA report, in TEXT or JSON form.
var loadDialect = dialect{"rif", []alias{{"latency_us", micro}}}

// bodyDialects are members of a JSON object.
var bodyDialects = []dialect{
	{"rif", []alias{
		{"latency_us", micro},
		{"latency_ms", milli},
		{"latency_median_ms", milli},
		{"latencyEstimateMillis", milli}, // JPrequal
		{"latency", nano},                // go-prequal
	}},
	{"in_flight_requests", []alias{ // OpenPrequal
		{"rif_avg_latency", second},
		{"overall_avg_latency", second},
	}},
	{"requestInFlight", []alias{{"latency", milli}}}, // ra-shree
}
