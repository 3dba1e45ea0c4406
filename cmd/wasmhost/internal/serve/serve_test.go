package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

// TestEnginesAgree makes the same balancer natively, from the built-in module, from its bytes in a file, and from a file
// whose digest is another, which is a stranger's.
func TestEnginesAgree(t *testing.T) {
	file, stranger := filepath.Join(t.TempDir(), "engine.wasm"), filepath.Join(t.TempDir(), "stranger.wasm")
	code, err := os.ReadFile("../../../../wasm/dist/engine.wasm")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, code, 0o600))
	require.NoError(t, os.WriteFile(stranger, append(code, 0, 3, 1, 'x', 0), 0o600))
	for name, run := range map[string]struct {
		change func(*Config)
		logged string
	}{
		"native":   {func(c *Config) { c.Engine = "native" }, ""},
		"built in": {func(*Config) {}, ""},
		"file":     {func(c *Config) { c.Module = file }, "guard=none"},
		"stranger": {func(c *Config) { c.Module, c.Fuel = stranger, 123_456 }, `guard="fuel, 123456 loop iterations a call"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := Defaults()
			c.Spec, c.Shards = "prequal seed=7 quantile=0.9", 2
			c.Endpoints = []Endpoint{{URL: "http://a:1"}, {URL: "http://b:2", Name: "b", Weight: 3}}
			run.change(&c)
			require.NoError(t, c.Validate())
			var log bytes.Buffer
			b, _, free, err := newBalancer(context.Background(), c, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			require.Contains(t, log.String(), run.logged)
			require.Contains(t, b.Spec(), "prequal seed=7")
			require.Contains(t, b.Spec(), "quantile=0.9")
			require.Equal(t, 2, b.Stats().Shards)
			require.Equal(t, "a:1", b.Endpoints()[0].Name)
			require.EqualValues(t, 3, b.Endpoints()[1].Weight)
			require.NoError(t, free())
		})
	}
}

func TestPolicyText(t *testing.T) {
	for _, c := range []struct{ given, canonical, drawn, want string }{
		{"random seed=1", "random seed=1", "", "random seed=1"},
		{"prequal", "prequal seed=0", "seed 7", "prequal (seed 7)"},
		{"prequal", "prequal seed=0", "", "prequal (canonical, without what is at its default: prequal seed=0)"},
		{"prequal seed=0", "prequal seed=0", "seed 7", "prequal seed=0 (seed 7)"},
		{"prequal seed=07", "prequal seed=7", "", "prequal seed=07 (canonical, without what is at its default: prequal seed=7)"},
	} {
		require.Equal(t, c.want, policyText(c.given, c.canonical, c.drawn))
	}
}

// TestSynchronousModeServes places requests on the answers to their own probes, with the header that hints at what
// they need: each of two replicas attracts its own.
func TestSynchronousModeServes(t *testing.T) {
	c := Defaults()
	c.Engine, c.Spec, c.Hint, c.ProbeWait = "native", "prequal seed=7 mode=sync wait=3", "X-Cart", Duration(5*time.Second)
	for _, name := range []string{"a", "b"} {
		monitor, err := replica.NewMonitor(probe.EstimatorConfig{}, replica.WithHints(func(hint string) int {
			if hint == name {
				return 100
			}
			return 1_000_000
		}))
		require.NoError(t, err)
		busy := monitor.Begin()
		defer busy.Withdraw()
		mux := http.NewServeMux()
		mux.Handle(replica.DefaultPath, monitor.ProbeHandler())
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
		s := httptest.NewServer(mux)
		defer s.Close()
		c.Endpoints = append(c.Endpoints, Endpoint{URL: s.URL})
	}
	require.NoError(t, c.Validate())
	b, _, free, err := newBalancer(context.Background(), c, slog.Default())
	require.NoError(t, err)
	h := watchOf(t, b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- (&host.Prober{Probe: h.probing(lbhttp.ProbeURL(nil, ""))}).Run(ctx, b)
	}()
	proxy := newProxy(b, h, c, slog.New(slog.DiscardHandler))
	asked := func(cart string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Cart", cart)
		proxy.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		return w.Body.String()
	}
	require.Eventually(t, func() bool { asked("a"); return b.Stats().Probes.Answered > 0 }, 5*time.Second, time.Millisecond)
	for range 20 {
		require.Equal(t, "a", asked("a"))
		require.Equal(t, "b", asked("b"))
	}
	v := newView(b, h)
	require.EqualValues(t, 3, v.Fit.Probes)
	require.EqualValues(t, 3, v.Fit.Wait)
	require.GreaterOrEqual(t, v.Decisions["cold"]+v.Decisions["hot"], uint64(40))
	require.Empty(t, v.Entries)
	require.True(t, v.Endpoints[0].LastProbe.OK)
	cancel()
	<-ended
	require.NoError(t, free())
}

// TestKeysComeFromTheHeader places requests with one key on one replica, and spreads those without.
func TestKeysComeFromTheHeader(t *testing.T) {
	c := Defaults()
	c.Engine, c.Spec, c.Key = "native", "maglev seed=7", "X-User"
	for _, name := range []string{"a", "b", "c"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		defer s.Close()
		c.Endpoints = append(c.Endpoints, Endpoint{URL: s.URL})
	}
	require.NoError(t, c.Validate())
	b, _, free, err := newBalancer(context.Background(), c, slog.Default())
	require.NoError(t, err)
	defer func() { require.NoError(t, free()) }()
	proxy := newProxy(b, watchOf(t, b), c, slog.New(slog.DiscardHandler))
	answers := func(user string) map[string]int {
		seen := map[string]int{}
		for range 20 {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			if user != "" {
				r.Header.Set("X-User", user)
			}
			proxy.ServeHTTP(w, r)
			require.Equal(t, 200, w.Code)
			seen[w.Body.String()]++
		}
		return seen
	}
	require.Len(t, answers("ann"), 1)
	require.Len(t, answers("bob"), 1)
	require.Greater(t, len(answers("")), 1)
}
