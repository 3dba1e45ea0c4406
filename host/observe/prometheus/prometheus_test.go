package prometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

var ctx = context.Background()

// whole is everything that this package exports, around one balancer.
type whole struct {
	b       *host.Balancer
	reg     *prometheus.Registry
	handler http.Handler
}

func wholeOf(t *testing.T, top int) whole {
	t.Helper()
	latencies, endpoints := headroom.NewLatencies(), observe.NewEndpoints(top)
	b, err := host.NewNativeBalancer(policy.Parse, "prequal seed=1", host.WithObserver(latencies.Observe), host.WithObserver(endpoints.Observe))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	reg := prometheus.NewPedanticRegistry()
	var opts []headroom.Option
	if top > 0 {
		opts = append(opts, headroom.WithEndpoints(endpoints))
	}
	reg.MustRegister(headroom.NewCollector(b, opts...), latencies)
	h := headroom.Instrument(reg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	return whole{b, reg, h}
}

func (w whole) fleet(t *testing.T, from, n int) {
	t.Helper()
	eps := make([]host.Endpoint, n)
	for i := range eps {
		eps[i].Name = fmt.Sprintf("r%d", from+i)
	}
	require.NoError(t, w.b.SetEndpoints(eps))
}

func (w whole) ask(t *testing.T, n int, o engine.Outcome) {
	t.Helper()
	for range n {
		p, err := w.b.Decide(ctx, host.Query{})
		require.NoError(t, err)
		p.Done(o)
	}
}

func (w whole) request() {
	w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// TestTheTableIsWhatIsExported compares names, kinds and help texts, both ways.
func TestTheTableIsWhatIsExported(t *testing.T) {
	w := wholeOf(t, 3)
	w.request()
	families, err := w.reg.Gather()
	require.NoError(t, err)
	var got, want []string
	for _, f := range families {
		got = append(got, f.GetName()+" "+strings.ToLower(f.GetType().String())+" "+f.GetHelp())
	}
	for _, m := range observe.Metrics() {
		want = append(want, m.Name+" "+string(m.Kind)+" "+m.Help)
	}
	slices.Sort(want)
	assert.Equal(t, want, got)
}

func TestTheExpositionPassesTheLinter(t *testing.T) {
	w := wholeOf(t, 3)
	w.fleet(t, 0, 10)
	w.ask(t, 20, engine.OutcomeFailure)
	w.request()
	families, err := w.reg.Gather()
	require.NoError(t, err)
	require.Greater(t, len(families), 40)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestTheNumberOfSeriesIsFixed has 10,000 endpoints come and go. A collector with a label for each would grow.
func TestTheNumberOfSeriesIsFixed(t *testing.T) {
	for _, top := range []int{0, 8} {
		t.Run(fmt.Sprintf("top %d", top), func(t *testing.T) {
			w := wholeOf(t, top)
			count := func() (n int) {
				families, err := w.reg.Gather()
				require.NoError(t, err)
				for _, f := range families {
					n += len(f.GetMetric())
				}
				return n
			}
			w.fleet(t, 0, 100)
			w.ask(t, 100, engine.OutcomeSuccess)
			count()
			w.ask(t, 100, engine.OutcomeSuccess)
			start := count()
			require.Greater(t, start, 80)
			for i := range 100 {
				w.fleet(t, 100*i, 100)
				w.ask(t, 100, engine.Outcome(i%4))
				require.Equal(t, start, count(), "after %d endpoints", 100*(i+1))
			}
		})
	}
}

func TestLatenciesByArmAndOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wholeOf(t, 0)
		w.fleet(t, 0, 3)
		end := func(after time.Duration, o engine.Outcome) {
			p, err := w.b.Decide(ctx, host.Query{})
			require.NoError(t, err)
			time.Sleep(after)
			p.Done(o)
		}
		end(30*time.Millisecond, engine.OutcomeSuccess)
		end(20*time.Millisecond, engine.OutcomeFailure)
		require.NoError(t, w.b.Canary(ctx, host.FromPolicies(policy.Parse, "random seed=2"), 10_000))
		end(2*time.Second, engine.OutcomeSuccess)
		end(time.Second, engine.OutcomeSuccess)
		require.NoError(t, w.b.SetEndpoints(nil))
		_, err := w.b.Decide(ctx, host.Query{})
		require.Error(t, err, "nothing to observe")

		families, err := w.reg.Gather()
		require.NoError(t, err)
		got := map[string]string{}
		for _, f := range families {
			if f.GetName() != "headroom_query_seconds" {
				continue
			}
			for _, m := range f.GetMetric() {
				h := m.GetHistogram()
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = fmt.Sprintf("%d %.2f", h.GetSampleCount(), h.GetSampleSum())
				assert.Len(t, h.GetBucket(), len(observe.LatencyBuckets()))
				assert.NotZero(t, h.GetSchema(), "native buckets")
			}
		}
		assert.Equal(t, map[string]string{
			"live success": "1 0.03", "live failure": "1 0.02", "live overloaded": "0 0.00", "live cancelled": "0 0.00",
			"canary success": "2 3.00", "canary failure": "0 0.00", "canary overloaded": "0 0.00", "canary cancelled": "0 0.00",
		}, got)
	})
}

func TestObservingAllocatesNothing(t *testing.T) {
	l, e := headroom.NewLatencies(), observe.NewEndpoints(2)
	p := &host.Placement{}
	e.Observe(ctx, host.Query{}, p, nil)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		one, two := l.Observe(ctx, host.Query{}, p, nil), e.Observe(ctx, host.Query{}, p, nil)
		one(engine.OutcomeSuccess, time.Millisecond)
		two(engine.OutcomeSuccess, time.Millisecond)
	}))
}
