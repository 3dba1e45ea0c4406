package otel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
	"github.com/headroom-lb/headroom/host/observe/otel"
)

var ctx = context.Background()

func balancerOf(t *testing.T, opts ...host.Option) *host.Balancer {
	t.Helper()
	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=1", opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	return b
}

func fleet(t *testing.T, b *host.Balancer, from, n int) {
	t.Helper()
	eps := make([]host.Endpoint, n)
	for i := range eps {
		eps[i].Name = fmt.Sprintf("r%d", from+i)
	}
	require.NoError(t, b.SetEndpoints(eps))
}

func ask(t *testing.T, b *host.Balancer, n int, o engine.Outcome) {
	t.Helper()
	for range n {
		p, err := b.Decide(ctx, host.Query{})
		require.NoError(t, err)
		p.Done(o)
	}
}

// collect gives every series by its name and attributes; of histograms the number of observations.
func collect(t *testing.T, r metric.Reader) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.Collect(ctx, &rm))
	out := map[string]float64{}
	key := func(name string, set attribute.Set) string {
		return name + " " + set.Encoded(attribute.DefaultEncoder())
	}
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			require.NotEmpty(t, m.Description, m.Name)
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				require.True(t, data.IsMonotonic, m.Name)
				for _, p := range data.DataPoints {
					out[key(m.Name, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					out[key(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					require.Equal(t, observe.LatencyBuckets(), p.Bounds)
					out[key(m.Name, p.Attributes)] = float64(p.Count)
				}
			default:
				require.Fail(t, "unknown kind of data", "%T", data)
			}
		}
	}
	return out
}

// TestMetricsAreTheTables and their number does not grow while 10,000 endpoints come and go.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("headroom")
	top := observe.NewEndpoints(4)
	b := balancerOf(t, host.WithObserver(top.Observe))
	reg, err := otel.Register(meter, b, otel.WithEndpoints(top), otel.WithAttributes(attribute.String("balancer", "main")))
	require.NoError(t, err)
	fleet(t, b, 0, 100)
	ask(t, b, 100, engine.OutcomeFailure)
	first := collect(t, reader)
	want := 2 * 5 // by endpoint
	for _, m := range observe.Metrics() {
		if m.Group == observe.OfBalancer {
			want += m.Series()
		}
	}
	require.Len(t, first, want)
	assert.Equal(t, 100.0, first["headroom.outcomes balancer=main,outcome=failure"])
	assert.Equal(t, 100.0, first["headroom.endpoints balancer=main,status=ready"])
	for i := range 100 {
		fleet(t, b, 100*i, 100)
		ask(t, b, 100, engine.OutcomeSuccess)
		require.Len(t, collect(t, reader), want, "after %d endpoints", 100*i)
	}
	require.NoError(t, reg.Unregister())
	require.Empty(t, collect(t, reader))
}

func TestLatenciesByArmAndOutcome(t *testing.T) {
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("headroom")
	latencies, err := otel.NewLatencies(meter)
	require.NoError(t, err)
	b := balancerOf(t, host.WithObserver(latencies))
	_, err = b.Decide(ctx, host.Query{})
	require.Error(t, err, "nothing to observe")
	fleet(t, b, 0, 2)
	ask(t, b, 3, engine.OutcomeSuccess)
	require.NoError(t, b.Canary(ctx, host.FromPolicies(policy.Parse, "random seed=2"), 10_000))
	ask(t, b, 2, engine.OutcomeOverloaded)
	assert.Equal(t, map[string]float64{
		"headroom.query arm=live,outcome=success": 3, "headroom.query arm=canary,outcome=overloaded": 2,
	}, collect(t, reader))
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range observe.Metrics() {
		name := otel.Name(&m)
		assert.Regexp(t, `^headroom\.[a-z_]+$`, name)
		seen[name+string(m.Kind)] = true
	}
	assert.Len(t, seen, len(observe.Metrics()), "two metrics of a kind under one name: %v", slices.Sorted(maps.Keys(seen)))
}

func TestDecisionsAreEventsOfTheSpan(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	b := balancerOf(t, host.WithObserver(otel.Trace))
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "http://u:hunter2@a"}, {Name: "http://u:hunter2@b"}}))
	require.NoError(t, b.Record("http://u:hunter2@a", engine.Reading{RIF: 3, Latency: engine.Millisecond}))
	require.NoError(t, b.Record("http://u:hunter2@b", engine.Reading{RIF: 3, Latency: 2 * engine.Millisecond}))

	with, span := tracer.Start(ctx, "query")
	p, err := b.Decide(with, host.Query{Key: "alice"})
	require.NoError(t, err)
	p.Done(engine.OutcomeOverloaded)
	require.NoError(t, b.SetEndpoints(nil))
	_, err = b.Decide(with, host.Query{Key: "alice", Tried: []string{"x"}})
	require.Error(t, err)
	span.End()
	ask := func() { _, _ = b.Decide(ctx, host.Query{}) }
	require.NotPanics(t, ask, "a context without a span")

	events := spans.Ended()[0].Events()
	require.Len(t, events, 3)
	got := func(i int) map[string]any {
		out := map[string]any{}
		for _, kv := range events[i].Attributes {
			out[string(kv.Key)] = kv.Value.AsInterface()
		}
		return out
	}
	assert.Equal(t, "headroom.decided", events[0].Name)
	d := got(0)
	assert.Equal(t, "cold", d["headroom.regime"])
	assert.Equal(t, "http://***@a", d["headroom.endpoint"])
	assert.Equal(t, "live", d["headroom.arm"])
	assert.EqualValues(t, 2, d["headroom.offered"])
	assert.EqualValues(t, 1, d["headroom.generation"])
	assert.Contains(t, d, "headroom.rif")
	assert.NotContains(t, d, "headroom.cause")
	assert.Equal(t, "headroom.ended", events[1].Name)
	assert.Equal(t, "overloaded", got(1)["headroom.outcome"])
	assert.Equal(t, "headroom.refused", events[2].Name)
	assert.EqualValues(t, 1, got(2)["headroom.tried"])
	assert.NotContains(t, fmt.Sprint(events), "alice")
	assert.NotContains(t, fmt.Sprint(events), "hunter2")
}
