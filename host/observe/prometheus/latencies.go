package prometheus

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
)

// Latencies is a histogram of how long queries took from placement to end: with fixed buckets, and for
// servers that ask for them with native ones. Register it, and give Observe to [host.WithObserver].
type Latencies struct {
	*prometheus.HistogramVec
	ended [2]func(engine.Outcome, time.Duration) // by arm, made once: an end allocates nothing
}

// NewLatencies makes the histogram, with all its series.
func NewLatencies() *Latencies {
	m := observe.Named("headroom_query_seconds")
	l := &Latencies{HistogramVec: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.Name, Help: m.Help, Buckets: observe.LatencyBuckets(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, m.LabelNames())}
	for i := range l.ended {
		var by []prometheus.Observer
		for _, outcome := range m.Labels[1].Values {
			by = append(by, l.WithLabelValues(observe.Arm(i == 1), outcome))
		}
		l.ended[i] = func(o engine.Outcome, took time.Duration) {
			if int(o) < len(by) {
				by[o].Observe(took.Seconds())
			}
		}
	}
	return l
}

// Observe is a [host.Observer].
func (l *Latencies) Observe(_ context.Context, _ host.Query, p *host.Placement, err error) func(engine.Outcome, time.Duration) {
	switch {
	case err != nil:
		return nil
	case p.Canary:
		return l.ended[1]
	}
	return l.ended[0]
}
