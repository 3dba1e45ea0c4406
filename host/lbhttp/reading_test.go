package lbhttp

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// headers makes a header of name, value, name, value, ….
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const unknown = engine.UnknownLatency

func TestHeaderReading(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.Header
		want engine.Reading
	}{
		"ours":              {headers("x-prequal-rif", "3", "x-prequal-latency-us", "2000"), engine.Reading{RIF: 3, Latency: 2 * milli}},
		"ours, unknown":     {headers("x-prequal-rif", "0"), engine.Reading{Latency: unknown}},
		"ours, largest RIF": {headers("x-prequal-rif", "4294967295"), engine.Reading{RIF: math.MaxUint32, Latency: unknown}},
		"ours before others": {
			headers("x-prequal-rif", "3", "x-rif", "9", "endpoint-load-metrics", "TEXT named_metrics.rif=8"),
			engine.Reading{RIF: 3, Latency: unknown},
		},
		"libvmod-prequal": {headers("X-In-Flight", "5", "X-Estimated-Latency", "12"), engine.Reading{RIF: 5, Latency: 12 * milli}},
		"furknbulbul": {
			headers("X-Requests-In-Flight", "4", "X-Latency-Estimate-Ms", "7.5", "X-Probe-Response-Time", "1700000000000000000"),
			engine.Reading{RIF: 4, Latency: 7500 * micro},
		},
		"X-RIF":            {headers("X-RIF", "6", "X-Latency-Estimate", "20", "X-CPU-Load", "0.4"), engine.Reading{RIF: 6, Latency: 20 * milli}},
		"zero is unknown":  {headers("X-RIF", "6", "X-Latency-Estimate", "0"), engine.Reading{RIF: 6, Latency: unknown}},
		"ORCA TEXT":        {headers("endpoint-load-metrics", "TEXT named_metrics.rif=3,named_metrics.latency_us=2000"), engine.Reading{RIF: 3, Latency: 2 * milli}},
		"ORCA TEXT colons": {headers("endpoint-load-metrics", "TEXT named_metrics.rif:3, cpu_utilization:0.3"), engine.Reading{RIF: 3, Latency: unknown}},
		"ORCA floats":      {headers("endpoint-load-metrics", "TEXT eps=1,named_metrics.rif=3.0,named_metrics.latency_us=1.5e3"), engine.Reading{RIF: 3, Latency: 1500 * micro}},
		"ORCA JSON":        {headers("endpoint-load-metrics", `JSON {"cpu_utilization":0.3,"named_metrics":{"rif":3,"latency_us":2000}}`), engine.Reading{RIF: 3, Latency: 2 * milli}},
	} {
		t.Run(name, func(t *testing.T) {
			rd, err := headerReading(c.h, headerDialects)
			require.NoError(t, err)
			require.Equal(t, c.want, rd)
		})
	}
}

func TestHeaderReadingRefused(t *testing.T) {
	for reason, hs := range map[string][]http.Header{
		errNoReading.Error(): {
			headers(),
			headers("x-prequal-latency-us", "3"),
			headers("endpoint-load-metrics", "TEXT cpu_utilization=0.3"),
			headers("endpoint-load-metrics", `JSON {"named_metrics":{"kv_cache_utilization":0.4}}`),
			headers("endpoint-load-metrics", "BIN CgA="),
			headers("endpoint-load-metrics", ""),
		},
		"is not a number": {
			headers("x-prequal-rif", ""),
			headers("x-prequal-rif", "NaN"),
			headers("x-prequal-rif", "inf"),
			headers("x-prequal-rif", "0x10"),
			headers("x-prequal-rif", "1_000"),
			headers("x-prequal-rif", "three"),
			headers("x-prequal-rif", "1-2"),
			headers("x-prequal-rif", strings.Repeat("1", 1000)),
			headers("endpoint-load-metrics", `JSON {"named_metrics":{"rif":"3"}}`),
			headers("endpoint-load-metrics", `JSON {"named_metrics":{"rif":[3]}}`),
		},
		"is out of range": {
			headers("x-prequal-rif", "-1"),
			headers("x-prequal-rif", "-0.5"),
			headers("x-prequal-rif", "4294967296"),
			headers("x-prequal-rif", "1e99"),
			headers("x-prequal-rif", "1e999"),
			headers("x-prequal-rif", "1", "x-prequal-latency-us", "-1"),
			headers("x-prequal-rif", "1", "x-prequal-latency-us", "18446744073709551615"),
			headers("x-prequal-rif", "1", "x-prequal-latency-us", "99999999999999999999"),
			headers("x-prequal-rif", "1", "x-prequal-latency-us", "144115188075857"),
		},
		"given 2 times":    {headers("x-prequal-rif", "1", "x-prequal-rif", "1")},
		"given twice":      {headers("endpoint-load-metrics", "TEXT named_metrics.rif=1,named_metrics.rif=2")},
		"is not name=":     {headers("endpoint-load-metrics", "TEXT "), headers("endpoint-load-metrics", "TEXT a=1,,b=2")},
		"not a JSON":       {headers("endpoint-load-metrics", `JSON {"named_metrics":`)},
		"longer than 4096": {headers("endpoint-load-metrics", "TEXT "+strings.Repeat("a=1,", 2000))},
	} {
		for _, h := range hs {
			_, err := headerReading(h, headerDialects)
			require.ErrorContains(t, err, reason, "%v", h)
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 200)
		}
	}
}

func TestBodyReading(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want engine.Reading
	}{
		"sathwick-p":                 {`{"rif":3,"latency_median_ms":12.5,"timestamp_ms":1700000000000}`, engine.Reading{RIF: 3, Latency: 12500 * micro}},
		"JPrequal":                   {`{"rif":3,"latencyEstimateMillis":12}`, engine.Reading{RIF: 3, Latency: 12 * milli}},
		"OpenPrequal":                {`{"status":"ok","in_flight_requests":3,"rif_avg_latency":0.012,"overall_avg_latency":9}`, engine.Reading{RIF: 3, Latency: 12 * milli}},
		"OpenPrequal, overall":       {`{"in_flight_requests":3,"rif_avg_latency":0,"overall_avg_latency":1.5}`, engine.Reading{RIF: 3, Latency: 1500 * milli}},
		"swampholyten":               {`{"rif":3,"latency_us":250,"cpu_util":0.1}`, engine.Reading{RIF: 3, Latency: 250 * micro}},
		"go-prequal":                 {`{"rif":3,"latency":2000000}`, engine.Reading{RIF: 3, Latency: 2 * milli}},
		"madhavrajverma":             {`{"server":"a","rif":3,"latency_ms":4,"error_rate":0}`, engine.Reading{RIF: 3, Latency: 4 * milli}},
		"ra-shree":                   {`{"serverName":"a","requestInFlight":3,"latency":4,"last_ten_latency":[1,2]}`, engine.Reading{RIF: 3, Latency: 4 * milli}},
		"null is unknown":            {`{"rif":3,"latency_us":null}`, engine.Reading{RIF: 3, Latency: unknown}},
		"RIF alone":                  {` {"rif":3}`, engine.Reading{RIF: 3, Latency: unknown}},
		"a unit beats a bare number": {`{"rif":3,"latency":7,"latency_ms":4}`, engine.Reading{RIF: 3, Latency: 4 * milli}},
	} {
		t.Run(name, func(t *testing.T) {
			rd, err := bodyReading([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.want, rd)
		})
	}
	for _, body := range []string{"", "ok", "null", "[]", "3", `{"RIF":3}`, `{"rif":null}`, `{"rif":3`, `{"rif":3} {}`} {
		_, err := bodyReading([]byte(body))
		require.ErrorIs(t, err, errNoReading, body)
	}
	for _, body := range []string{`{"rif":"3"}`, `{"rif":-1}`, `{"rif":1e40}`, `{"rif":{}}`, `{"rif":1,"latency":1e300}`, `{"rif":1,"latency_ms":true}`} {
		_, err := bodyReading([]byte(body))
		require.Error(t, err, body)
		require.NotErrorIs(t, err, errNoReading, body)
	}
}

func FuzzReading(f *testing.F) {
	f.Add("3", "2000", "TEXT named_metrics.rif=3,named_metrics.latency_us=2000", `{"rif":3,"latency_ms":4}`)
	f.Add("", "", `JSON {"named_metrics":{"rif":3}}`, `{"in_flight_requests":3,"rif_avg_latency":1e-3}`)
	f.Add("NaN", "-1", "TEXT named_metrics.rif:1e309", `{"rif":99999999999999999999}`)
	f.Add("4294967295", "144115188075855", "BIN AA==", `[[[[[[`)
	f.Fuzz(func(t *testing.T, rif, latency, load, body string) {
		sound := func(rd engine.Reading, err error) {
			if err != nil {
				if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
					t.Fatalf("error of %d bytes: %q", len(err.Error()), err)
				}
				return
			}
			if rd.Latency != unknown && (rd.Latency <= 0 || rd.Latency > engine.MaxLatency) || rd.Asked != 0 {
				t.Fatalf("reading %+v", rd)
			}
		}
		sound(headerReading(http.Header{"X-Prequal-Rif": {rif}, "X-Prequal-Latency-Us": {latency}}, headerDialects))
		sound(headerReading(http.Header{"X-Rif": {rif}, "X-Latency-Estimate": {latency}}, headerDialects))
		sound(headerReading(http.Header{"Endpoint-Load-Metrics": {load}}, headerDialects))
		sound(bodyReading([]byte(body)))
	})
}
