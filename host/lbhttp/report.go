package lbhttp

import (
	"net/http"

	"github.com/headroom-lb/headroom/host/replica"
)

// reportHeaders are meant for the balancer and never reach users, in whatever form a replica or
// a proxy before it writes them.
var reportHeaders = [...]string{
	replica.HeaderRIF,
	replica.HeaderLatency,
	replica.HeaderLoad,
	replica.HeaderLoad + "-Bin",
	replica.HeaderLoad + "-Json",
	"X-" + replica.HeaderLoad,
}

// report records a reading and a load report that came with headers or trailers, if any, and
// strips them. What makes no sense is dropped: an ordinary answer is not refused for it.
func (t *Transport) report(endpoint string, h http.Header) {
	if len(h) == 0 {
		return
	}
	if t.opts.piggyback && (h[replica.HeaderRIF] != nil || h[replica.HeaderLoad] != nil) {
		if rd, err := headerReading(h, headerDialects[:1]); err == nil {
			// An endpoint that has just left the set has no use for a reading.
			_ = t.balancer.Record(endpoint, rd)
		}
		if v, ok, err := single(h, replica.HeaderLoad); ok && err == nil {
			if l, err := loadReport(v); err == nil {
				_ = t.balancer.RecordLoad(endpoint, l)
			}
		}
	}
	strip(h)
}

func strip(h http.Header) {
	for _, name := range reportHeaders {
		delete(h, name)
	}
}
