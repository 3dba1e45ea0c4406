package replica

import (
	"net/http"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
)

// DefaultPath is where probes are answered unless the application says otherwise.
const DefaultPath = "/prequal/probe"

// Headers of the probe protocol, in canonical form.
const (
	HeaderRIF     = "X-Prequal-Rif"         // requests in flight, decimal
	HeaderLatency = "X-Prequal-Latency-Us"  // whole microseconds, at least 1; absent when unknown
	HeaderLoad    = "Endpoint-Load-Metrics" // both again as an ORCA report in TEXT form
	HeaderHint    = "X-Prequal-Hint"        // of a probe: what the query is about that it is sent for
)

// SetHeaders writes a reading in the form of the probe protocol, replacing what was there.
// A known latency is rounded up to a whole microsecond, so that it is never zero.
func SetHeaders(h http.Header, rd engine.Reading) {
	// One string holds all three values and one array their slices.
	const first, second = "TEXT named_metrics.rif=", ",named_metrics.latency_us="
	buf := make([]byte, 0, 96)
	buf = strconv.AppendUint(append(buf, first...), uint64(rd.RIF), 10)
	end := len(buf)
	known := rd.Latency >= 0
	if known {
		us := (rd.Latency-1)/engine.Microsecond + 1
		buf = strconv.AppendInt(append(buf, second...), int64(us), 10)
	}
	load := string(buf)
	values := [...]string{load, load[len(first):end], ""}
	h[HeaderLoad], h[HeaderRIF] = values[0:1:1], values[1:2:2]
	if known {
		values[2] = load[end+len(second):]
		h[HeaderLatency] = values[2:3:3]
	} else {
		delete(h, HeaderLatency)
	}
}

// ProbeHandler answers GET and HEAD with the reading in headers and an empty body; other methods
// get 405. It may be mounted inside [Monitor.Middleware] or outside, and is not counted in
// either place. At a path other than the one of [WithProbePath] inside the middleware, a probe
// counts for the microsecond until this handler withdraws it; other probes may see it.
func (m *Monitor) ProbeHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.discount(w)
		h := w.Header()
		h["Cache-Control"] = noStore
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "probe with GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		SetHeaders(h, m.hinted(r))
		w.WriteHeader(http.StatusOK)
	})
}

var noStore = []string{"no-store"}
