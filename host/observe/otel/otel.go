// Package otel exports a balancer's metrics to OpenTelemetry and adds its decisions to spans. Metrics are
// those of the table in package observe, under names with dots.
package otel

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
)

// Option adjusts what is registered.
type Option func(*options)

type options struct {
	endpoints *observe.Endpoints
	more      []attribute.KeyValue
}

// WithEndpoints adds the counts of the busiest endpoints by name.
func WithEndpoints(e *observe.Endpoints) Option { return func(o *options) { o.endpoints = e } }

// WithAttributes adds attributes of one's own to all that is exported, such as the balancer's name where
// there are several. Their values must not grow in number.
func WithAttributes(kv ...attribute.KeyValue) Option {
	return func(o *options) { o.more = append(o.more, kv...) }
}

// Name is a metric's name in OpenTelemetry: headroom_decisions_total is headroom.decisions.
func Name(m *observe.Metric) string {
	name := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
	return strings.Replace(name, "_", ".", 1)
}

// row is a metric and how its instrument takes a value.
type row struct {
	metric  observe.Metric
	labels  []string
	observe func(o metric.Observer, v float64, attrs metric.ObserveOption)
}

// Register reads the balancer whenever the meter's readers collect. Unregister what it returns before
// the balancer is dropped.
func Register(meter metric.Meter, b *host.Balancer, opts ...Option) (metric.Registration, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	var rows []row
	var instruments []metric.Observable
	for _, m := range observe.Metrics() {
		if m.Group != observe.OfBalancer && (m.Group != observe.OfEndpoints || o.endpoints == nil) {
			continue
		}
		r := row{metric: m, labels: m.LabelNames()}
		if m.Kind == observe.Counter {
			c, err := meter.Int64ObservableCounter(Name(&m), metric.WithDescription(m.Help))
			if err != nil {
				return nil, err
			}
			instruments = append(instruments, c)
			r.observe = func(o metric.Observer, v float64, attrs metric.ObserveOption) { o.ObserveInt64(c, int64(v), attrs) }
		} else {
			g, err := meter.Float64ObservableGauge(Name(&m), metric.WithDescription(m.Help))
			if err != nil {
				return nil, err
			}
			instruments = append(instruments, g)
			r.observe = func(o metric.Observer, v float64, attrs metric.ObserveOption) { o.ObserveFloat64(g, v, attrs) }
		}
		rows = append(rows, r)
	}
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := observe.Look(b, o.endpoints)
		for _, r := range rows {
			r.metric.Read(s, func(v float64, values ...string) {
				attrs := append([]attribute.KeyValue(nil), o.more...)
				for i, value := range values {
					attrs = append(attrs, attribute.String(r.labels[i], value))
				}
				r.observe(to, v, metric.WithAttributes(attrs...))
			})
		}
		return nil
	}, instruments...)
}

// NewLatencies makes a histogram of how long queries took from placement to end, by arm and outcome. Give
// it to [host.WithObserver].
func NewLatencies(meter metric.Meter, opts ...Option) (host.Observer, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	m := observe.Named("headroom_query_seconds")
	h, err := meter.Float64Histogram(Name(m), metric.WithUnit("s"), metric.WithDescription(m.Help),
		metric.WithExplicitBucketBoundaries(observe.LatencyBuckets()...))
	if err != nil {
		return nil, err
	}
	var ended [2]func(engine.Outcome, time.Duration) // made once
	for i := range ended {
		var by []metric.MeasurementOption
		for _, outcome := range m.Labels[1].Values {
			set := attribute.NewSet(append([]attribute.KeyValue{
				attribute.String("arm", observe.Arm(i == 1)), attribute.String("outcome", outcome),
			}, o.more...)...)
			by = append(by, metric.WithAttributeSet(set))
		}
		ended[i] = func(out engine.Outcome, took time.Duration) {
			if int(out) < len(by) {
				h.Record(context.Background(), took.Seconds(), by[out])
			}
		}
	}
	return func(_ context.Context, _ host.Query, p *host.Placement, err error) func(engine.Outcome, time.Duration) {
		switch {
		case err != nil:
			return nil
		case p.Canary:
			return ended[1]
		}
		return ended[0]
	}, nil
}

// Trace is a [host.Observer] that adds events to the span of a query's context: headroom.decided and
// headroom.ended, or headroom.refused. It starts no spans. Keys and hints do not appear; names and
// errors go through [observe.Redact].
func Trace(ctx context.Context, q host.Query, p *host.Placement, err error) func(engine.Outcome, time.Duration) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	tried := attribute.Int("headroom.tried", len(q.Tried))
	if err != nil {
		span.AddEvent("headroom.refused", trace.WithAttributes(tried, attribute.String("headroom.error", observe.Redact(err.Error()))))
		return nil
	}
	span.AddEvent("headroom.decided", trace.WithAttributes(append(decided(p), tried)...))
	return func(o engine.Outcome, took time.Duration) {
		span.AddEvent("headroom.ended", trace.WithAttributes(
			attribute.String("headroom.outcome", o.String()), attribute.Float64("headroom.seconds", took.Seconds())))
	}
}

// decided is a placement as attributes. What the rule did not use is left out.
func decided(p *host.Placement) []attribute.KeyValue {
	d := &p.Decision
	attrs := []attribute.KeyValue{
		attribute.String("headroom.endpoint", observe.Redact(p.Endpoint.Name)),
		attribute.String("headroom.arm", observe.Arm(p.Canary)),
		attribute.Int64("headroom.generation", int64(p.Generation)),
		attribute.String("headroom.regime", d.Regime.String()),
		attribute.Int64("headroom.offered", int64(d.Offered)),
		attribute.Int64("headroom.cold", int64(d.Cold)),
		attribute.Int64("headroom.hot", int64(d.Hot)),
	}
	if d.Cause != engine.CauseNone {
		attrs = append(attrs, attribute.String("headroom.cause", d.Cause.String()))
	}
	if d.Threshold != engine.NoThreshold {
		attrs = append(attrs, attribute.Int64("headroom.threshold", int64(d.Threshold)))
	}
	if d.Regime == engine.RegimeCold || d.Regime == engine.RegimeHot {
		attrs = append(attrs, attribute.Int64("headroom.rif", int64(d.RIF)), attribute.Float64("headroom.age_seconds", time.Duration(d.Age).Seconds()))
		if d.Latency != engine.UnknownLatency {
			attrs = append(attrs, attribute.Float64("headroom.latency_seconds", time.Duration(d.Latency).Seconds()))
		}
	}
	return attrs
}
