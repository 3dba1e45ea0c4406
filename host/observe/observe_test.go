package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/observe"
)

var ctx = context.Background()

func balancerOf(t *testing.T, spec string, opts ...host.Option) *host.Balancer {
	t.Helper()
	b, err := host.NewNativeBalancer(policy.Parse, spec, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	return b
}

func fleet(from, n int) []host.Endpoint {
	eps := make([]host.Endpoint, n)
	for i := range eps {
		eps[i] = host.Endpoint{Name: fmt.Sprintf("r%d", from+i)}
	}
	return eps
}

func ask(t *testing.T, b *host.Balancer, n int, o engine.Outcome) {
	t.Helper()
	for range n {
		p, err := b.Decide(ctx, host.Query{})
		require.NoError(t, err)
		p.Done(o)
	}
}

// read gives every series of the balancer's groups by its name and labels.
func read(t *testing.T, b *host.Balancer, e *observe.Endpoints) map[string]float64 {
	t.Helper()
	s, out := observe.Look(b, e), map[string]float64{}
	for _, m := range observe.Metrics() {
		n := 0
		m.Read(s, func(v float64, labels ...string) {
			name := m.Name + " " + strings.Join(labels, " ")
			require.Len(t, labels, len(m.Labels), name)
			for i, l := range m.Labels {
				if l.Values != nil {
					require.Contains(t, l.Values, labels[i], name)
				}
			}
			require.NotContains(t, out, name, "twice")
			out[name], n = v, n+1
		})
		if m.Group == observe.OfBalancer {
			require.Equal(t, m.Series(), n, m.Name)
		}
	}
	return out
}

func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range observe.Metrics() {
		assert.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		assert.Regexp(t, `^headroom_[a-z_]+$`, m.Name)
		assert.Equal(t, m.Kind == observe.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		for _, text := range []string{m.Help, m.Rises} {
			assert.True(t, strings.HasSuffix(text, ".") && !strings.ContainsAny(text, "|\n"), "%s: %q", m.Name, text)
		}
	}
	assert.Panics(t, func() { observe.Named("headroom_nonsense") })
}

// TestSeriesAreFixed: every series is there from the start, and none comes with 10,000 endpoints that come and go.
func TestSeriesAreFixed(t *testing.T) {
	top := observe.NewEndpoints(5)
	b := balancerOf(t, "prequal seed=1", host.WithObserver(top.Observe), host.WithRecorder(&host.Recorder{}))
	names := func(e *observe.Endpoints) []string { return slices.Sorted(maps.Keys(read(t, b, e))) }
	start := names(nil)
	require.Greater(t, len(start), 80)
	for i := range 100 {
		require.NoError(t, b.SetEndpoints(fleet(100*i, 100)))
		ask(t, b, 20, engine.OutcomeSuccess)
		require.Equal(t, start, names(nil), "after %d endpoints", 100*i)
		require.LessOrEqual(t, len(names(top)), len(start)+2*6, "after %d endpoints", 100*i)
	}
	require.NoError(t, b.Canary(ctx, host.FromPolicies(policy.Parse, "random seed=2"), 5000))
	c, err := b.Compare(ctx, host.FromPolicies(policy.Parse, "random seed=3"))
	require.NoError(t, err)
	defer c.Stop(ctx)
	ask(t, b, 100, engine.OutcomeFailure)
	require.Equal(t, start, names(nil))
}

func TestValuesAreTheBalancersOwn(t *testing.T) {
	b := balancerOf(t, "prequal seed=1", host.WithRecorder(&host.Recorder{}))
	at := func(name string) float64 {
		t.Helper()
		got := read(t, b, nil)
		require.Contains(t, got, name)
		return got[name]
	}
	assert.True(t, math.IsInf(at("headroom_threshold "), 1))
	require.NoError(t, b.SetEndpoints(append(fleet(0, 20), host.Endpoint{Name: "d", Status: engine.StatusDraining})))
	require.NoError(t, b.Record("r0", engine.Reading{RIF: 4, Latency: engine.Millisecond}))
	require.NoError(t, b.Record("r1", engine.Reading{RIF: 4, Latency: engine.Millisecond}))
	ask(t, b, 3, engine.OutcomeOverloaded)
	open, err := b.Decide(ctx, host.Query{})
	require.NoError(t, err)
	defer open.Done(engine.OutcomeSuccess)
	st := b.Stats()
	for name, want := range map[string]float64{
		"headroom_endpoints ready":                      20,
		"headroom_endpoints draining":                   1,
		"headroom_outcomes_total overloaded":            3,
		"headroom_in_flight ":                           1,
		"headroom_arm_in_flight live":                   1,
		"headroom_pool_events_total admitted":           2,
		"headroom_readings_total ":                      2,
		"headroom_pool_bound ":                          float64(st.Fit.Pool),
		"headroom_decisions_total cold":                 float64(st.ByRegime[engine.RegimeCold]),
		"headroom_fallbacks_total empty":                float64(st.ByCause[engine.CauseEmpty]),
		"headroom_arm_decisions_total live cold":        float64(st.ByRegime[engine.RegimeCold]),
		"headroom_canary_share ":                        0,
		"headroom_generation ":                          1,
		"headroom_arm_outcomes_total canary overloaded": 0,
	} {
		assert.Equal(t, want, at(name), name)
	}
	require.NoError(t, b.Canary(ctx, host.FromPolicies(policy.Parse, "random seed=2"), 10_000))
	ask(t, b, 7, engine.OutcomeSuccess)
	assert.Equal(t, 1.0, at("headroom_canary_share "))
	assert.Equal(t, 7.0, at("headroom_arm_decisions_total canary direct"))
	require.NoError(t, b.Promote(ctx))
	assert.Equal(t, 7.0, at("headroom_arm_decisions_total canary direct"), "a canary's counts outlive it")
	assert.Equal(t, 0.0, at("headroom_arm_decisions_total live direct"))
	assert.Equal(t, 1.0, at("headroom_swaps_total "))
	require.NoError(t, b.Dump(&bytes.Buffer{}, 0))
	assert.Positive(t, at("headroom_recorder_kept_bytes "))
	_ = b.SetEndpoints(nil)
	_, err = b.Decide(ctx, host.Query{})
	require.Error(t, err)
	assert.Equal(t, 1.0, at("headroom_decide_errors_total "))
}

// lines is a log that a test can read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.buf.Write(p) }

func (l *lines) take(t *testing.T) (out []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		out = append(out, m)
	}
	l.buf.Reset()
	return out
}

func logTo(l *lines, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

func TestTheLogSamplesDecisions(t *testing.T) {
	var out lines
	log := &observe.Log{Logger: logTo(&out, slog.LevelDebug), Sample: 10}
	b := balancerOf(t, "random seed=1", log.Options()...)
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "http://user:hunter2@r1/x"}}))
	for range 100 {
		p, err := b.Decide(ctx, host.Query{Key: "alice@example.com", Hint: "secret-hint"})
		require.NoError(t, err)
		p.Done(engine.OutcomeFailure)
	}
	require.NotContains(t, out.buf.String(), "alice")
	require.NotContains(t, out.buf.String(), "hunter2")
	require.NotContains(t, out.buf.String(), "secret-hint")
	got := out.take(t)
	require.Len(t, got, 10)
	for _, m := range got {
		assert.Equal(t, "DEBUG", m["level"])
		assert.Equal(t, "decided", m["msg"])
		assert.Equal(t, fmt.Sprintf("%016x", uint64(engine.KeyOf("alice@example.com"))), m["key_hash"])
		assert.Equal(t, "http://***@r1/x", m["endpoint"])
		assert.Equal(t, "failure", m["outcome"])
		assert.Equal(t, "direct", m["regime"])
		assert.EqualValues(t, 10, m["one_in"])
	}
	require.NoError(t, b.SetEndpoints(nil))
	for range 10 {
		_, _ = b.Decide(ctx, host.Query{})
	}
	require.Len(t, out.take(t), 1)
}

func TestTheLogIsSilentAboveDebug(t *testing.T) {
	var out lines
	log := &observe.Log{Logger: logTo(&out, slog.LevelInfo), Sample: 1}
	b := balancerOf(t, "random seed=1", log.Options()...)
	require.NoError(t, b.SetEndpoints(fleet(0, 2)))
	ask(t, b, 10, engine.OutcomeSuccess)
	require.Empty(t, out.take(t))
	require.NoError(t, b.Canary(ctx, host.FromPolicies(policy.Parse, "round_robin seed=1"), 250))
	require.NoError(t, b.Rollback(ctx))
	got := out.take(t)
	require.Len(t, got, 2)
	assert.Equal(t, "INFO", got[0]["level"])
	assert.Equal(t, "canary", got[0]["kind"])
	assert.EqualValues(t, 0.025, got[0]["share"])
	assert.Equal(t, "rollback", got[1]["kind"])
	assert.Equal(t, "random seed=1", got[1]["spec"])
}

// TestTrapsAreLoggedAtMostOnceASecond fails a guest a hundred times a second: the log stays readable, and says
// how much it withheld.
func TestTrapsAreLoggedAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := &observe.Log{Logger: logTo(&out, slog.LevelInfo)}
		for range 250 {
			log.Trap(errors.New("unreachable executed"))
			time.Sleep(10 * time.Millisecond)
		}
		got := out.take(t)
		require.Len(t, got, 3)
		for i, m := range got {
			assert.Equal(t, "WARN", m["level"])
			assert.Contains(t, m["error"], "unreachable executed")
			assert.EqualValues(t, min(i, 1)*99, m["withheld"])
		}
	})
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"dial tcp 10.0.0.1:80":               "dial tcp 10.0.0.1:80",
		"http://u:p@h/x":                     "http://***@h/x",
		`Get "https://h/x?t=s": EOF`:         `Get "https://h/x?***": EOF`,
		"http://u:p@w@h?k=v#f":               "http://***@h?***",
		"https://h/x#token":                  "https://h/x?***",
		"see http://h/a@b":                   "see http://h/a@b",
		"Authorization: Bearer abcdefgh.ijk": "Authorization: Bearer ***",
		"two\nlines\x1b[31m":                 "two lines [31m",
		"bad \xff byte":                      "bad \ufffd byte",
		strings.Repeat("x", 600):             strings.Repeat("x", 500) + "...",
	} {
		assert.Equal(t, want, observe.Redact(in))
	}
}
