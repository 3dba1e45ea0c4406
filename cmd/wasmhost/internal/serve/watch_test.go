package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// TestProbesAreLoggedOncePerChange fails the probes of an endpoint for long and lets it answer again. It stays in.
func TestProbesAreLoggedOncePerChange(t *testing.T) {
	var out bytes.Buffer
	b := balancerOf(t, "random seed=1", "http://a", "http://b")
	w := watchOf(t, b)
	w.log = slog.New(slog.NewTextHandler(&out, nil))
	var probeErr error
	probe := w.probing(func(context.Context, host.Endpoint) (engine.Reading, error) { return engine.Reading{}, probeErr })
	ask := func(n int, err error) {
		probeErr = err
		for range n {
			_, got := probe(t.Context(), host.Endpoint{Name: "r0"})
			require.Equal(t, err, got)
		}
	}
	said := func(warned, answered int) {
		t.Helper()
		require.Equal(t, warned, strings.Count(out.String(), `level=WARN msg="endpoint answers no probes"`), out.String())
		require.Equal(t, answered, strings.Count(out.String(), `level=INFO msg="endpoint answers probes again" endpoint=r0`), out.String())
	}
	refused := errors.New("status 404, want 200")
	ask(2, refused)
	ask(1, nil)
	ask(2, refused)
	said(0, 0)
	ask(20, refused)
	said(1, 0)
	ask(20, context.Canceled)
	said(1, 0)
	require.Equal(t, engine.StatusReady, b.Endpoints()[0].Status)
	ask(1, nil)
	said(1, 1)
}

func TestEndpointInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := balancerOf(t, "random seed=1", "http://a")
		w := watchOf(t, b)
		first := func() endpointView { return newView(b, w).Endpoints[0] }
		require.Equal(t, endpointView{Name: "r0", URL: "http://a", Status: "ready"}, first())
		w.Sent("r0")
		w.Sent("r0")
		w.Ended("r0")
		_, _ = w.probing(func(context.Context, host.Endpoint) (engine.Reading, error) {
			return engine.Reading{}, errors.New("status 404, want 200")
		})(t.Context(), host.Endpoint{Name: "r0"})
		time.Sleep(1500 * time.Millisecond)
		want := endpointView{Name: "r0", URL: "http://a", Status: "ready", InFlight: 1, LastProbe: &probeView{Error: "status 404, want 200", AgeMS: 1500}}
		require.Equal(t, want, first())
		require.NoError(t, w.monitor.SetAdmin("r0", engine.StatusDraining))
		want.Status, want.Cause, want.Reason = "draining", "operator", "draining: set by an operator"
		require.Equal(t, want, first())
	})
}

// TestCheckers asks a replica in both ways.
func TestCheckers(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusNoContent)
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/prefix/up?full=1" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(int(status.Load()))
	}))
	w := &watch{states: map[string]*endpointState{
		"a":       {given: host.Endpoint{Addr: replica.URL + "/prefix/"}},
		"nowhere": {given: host.Endpoint{Addr: "http://nowhere.invalid"}},
	}}
	connects, asks := w.checker(""), w.checker("/up?full=1")
	require.NoError(t, connects(t.Context(), "a"))
	for code, want := range map[int64]string{204: "", 302: "", 400: "status 400, want 200 to 399", 503: "/up?full=1 answers with status 503"} {
		status.Store(code)
		if err := asks(t.Context(), "a"); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	require.ErrorContains(t, connects(t.Context(), "nowhere"), "dial")
	replica.Close()
	require.Error(t, connects(t.Context(), "a"))
	require.Error(t, asks(t.Context(), "a"))
}

// TestFailingReplicaLeavesAndReturns serves three replicas of which one begins to fail its checks, and then its
// requests; the proxy, its log and its admin pages tell of it.
func TestFailingReplicaLeavesAndReturns(t *testing.T) {
	var sick, failing atomic.Bool
	c := Defaults()
	c.Engine, c.Spec = "native", "round_robin seed=1"
	c.Health.Interval, c.Health.Path = Duration(20*time.Millisecond), "/up"
	for i := range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if i == 1 && (sick.Load() && r.URL.Path == "/up" || failing.Load() && r.URL.Path != "/up") {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = w.Write([]byte{byte('a' + i)})
		}))
		defer s.Close()
		c.Endpoints = append(c.Endpoints, Endpoint{URL: s.URL, Name: string(rune('a' + i))})
	}
	require.NoError(t, c.Validate())
	var out syncedBuffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	b, _, free, err := newBalancer(t.Context(), c, log)
	require.NoError(t, err)
	defer func() { require.NoError(t, free()) }()
	w, err := newWatch(b, c, log)
	require.NoError(t, err)
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- w.monitor.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	proxy, admin := newProxy(b, w, c, log), adminOf(b, w)
	second := func() endpointView {
		_, body := ask(admin, "GET", "/pool", "")
		var v view
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		return v.Endpoints[1]
	}
	is := func(status, cause string) {
		t.Helper()
		require.Eventually(t, func() bool {
			ask(proxy, "GET", "/", "")
			v := second()
			return v.Status == status && v.Cause == cause
		}, time.Minute, time.Millisecond)
	}
	answers := func() map[string]bool {
		seen := map[string]bool{}
		for range 12 {
			_, body := ask(proxy, "GET", "/", "")
			seen[body] = true
		}
		return seen
	}
	is("ready", "")
	require.Len(t, answers(), 3)

	sick.Store(true)
	is("unavailable", "check")
	require.Equal(t, map[string]bool{"a": true, "c": true}, answers())
	require.Contains(t, second().Reason, "/up answers with status 500, want 200 to 399")
	require.True(t, second().Failing)
	_, metrics := ask(admin, "GET", "/metrics", "")
	require.Contains(t, metrics, `headroom_endpoints_out{cause="check"} 1`)
	require.Contains(t, metrics, `headroom_endpoints{status="unavailable"} 1`)
	require.Contains(t, metrics, "headroom_panic 0")
	_, body := ask(admin, "POST", "/status", `{"endpoint":"b","status":"ready"}`)
	require.Contains(t, body, `"unavailable"`, "an operator's ready only ends what an operator began")
	sick.Store(false)
	is("ready", "")
	require.Len(t, answers(), 3)
	require.Equal(t, 1, strings.Count(out.String(), `msg="endpoint fails; it is tried again until it answers" endpoint=b`))
	require.Equal(t, 1, strings.Count(out.String(), `msg="endpoint answers again" endpoint=b`))

	failing.Store(true)
	is("unavailable", "circuit")
	require.Equal(t, map[string]bool{"a": true, "c": true}, answers())
	require.Contains(t, second().Reason, "5 queries in a row failed")
}

// syncedBuffer is a log that is read while it is written.
type syncedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestSlowStartReachesTheBalancer gives weights to the balancer that leave room for a share.
func TestSlowStartReachesTheBalancer(t *testing.T) {
	c := Defaults()
	c.Engine, c.Spec, c.Health.SlowStart = "native", "weighted_random seed=1", Duration(time.Hour)
	c.Endpoints = []Endpoint{{URL: "http://a"}, {URL: "http://b", Weight: 3}}
	require.NoError(t, c.Validate())
	b, _, free, err := newBalancer(t.Context(), c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, free()) }()
	w, err := newWatch(b, c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	weights := func() []uint32 { return []uint32{b.Endpoints()[0].Weight, b.Endpoints()[1].Weight} }
	require.Equal(t, []uint32{100, 300}, weights())
	require.NoError(t, w.monitor.SetAdmin("b", engine.StatusUnavailable))
	require.NoError(t, w.monitor.SetAdmin("b", engine.StatusReady))
	require.Equal(t, []uint32{100, 30}, weights())
	require.Equal(t, engine.StatusReady, b.Endpoints()[1].Status)
}
