package lbhttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

func TestProbeURL(t *testing.T) {
	m, err := replica.NewMonitor(probe.EstimatorConfig{})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, m.ProbeHandler())
	mux.HandleFunc("/json", says(`{"rif":7,"latency_ms":2}`))
	mux.HandleFunc("/under/prequal/probe", says(`{"rif":8}`))
	mux.HandleFunc("/broken", status(503))
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json", http.StatusFound) })
	mux.HandleFunc("/empty", says(""))
	mux.HandleFunc("/wrong", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Prequal-Rif", "-1") })
	mux.HandleFunc("/huge", says(`{"rif":1,"pad":"`+strings.Repeat("x", 5000)+`"}`))
	mux.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Pad", strings.Repeat("x", 20_000))
		replica.SetHeaders(w.Header(), engine.Reading{RIF: 1})
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1000)); err != nil {
				return
			}
		}
	})
	s := server(t, m.Middleware(mux))
	ep := host.Endpoint{Name: "a", Addr: s.URL}
	ask := func(path string) (engine.Reading, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return lbhttp.ProbeURL(nil, path)(ctx, ep)
	}

	rd, err := ask("")
	require.NoError(t, err)
	require.Equal(t, engine.Reading{RIF: 0, Latency: engine.UnknownLatency}, rd)
	busy := m.Begin()
	defer busy.Withdraw()
	rd, err = ask("")
	require.NoError(t, err)
	require.Equal(t, uint32(1), rd.RIF)
	rd, err = ask("json")
	require.NoError(t, err)
	require.Equal(t, engine.Reading{RIF: 7, Latency: 2 * engine.Millisecond}, rd)

	for path, reason := range map[string]string{
		"/broken": "status 503, want 200", "/moved": "status 302", "/empty": "send x-prequal-rif", "/wrong": "out of range",
		"/huge": "longer than 4096 bytes", "/endless": "longer than 4096 bytes", "/headers": "headers exceeded", "/nowhere": "status 404",
	} {
		_, err := ask(path)
		require.ErrorContains(t, err, reason, path)
	}

	ep.Addr = s.URL + "/under/"
	rd, err = ask("")
	require.NoError(t, err)
	require.Equal(t, uint32(8), rd.RIF)
	ep.Addr = "nonsense://"
	_, err = ask("")
	require.ErrorContains(t, err, "bad endpoint address")
	ep.Addr = refusing(t)
	_, err = ask("")
	require.ErrorContains(t, err, "refused")
}

func TestProbeURLReusesConnections(t *testing.T) {
	addrs := make(chan string, 20)
	s := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addrs <- r.RemoteAddr
		_, _ = io.WriteString(w, `{"rif":1}`)
	}))
	ask := lbhttp.ProbeURL(nil, "")
	for range 10 {
		_, err := ask(t.Context(), host.Endpoint{Addr: s.URL})
		require.NoError(t, err)
	}
	first := <-addrs
	for range 9 {
		require.Equal(t, first, <-addrs)
	}
}

// The whole loop: the engine says who is due, the prober asks over HTTP, decisions use it.
func TestProberOverHTTP(t *testing.T) {
	b := balancer(t, "prequal seed=7")
	var eps []host.Endpoint
	for _, name := range []string{"a", "b", "c"} {
		m, err := replica.NewMonitor(probe.EstimatorConfig{})
		require.NoError(t, err)
		mux := http.NewServeMux()
		mux.Handle(replica.DefaultPath, m.ProbeHandler())
		mux.HandleFunc("/", says(name))
		eps = append(eps, host.Endpoint{Name: name, Addr: server(t, m.Middleware(mux)).URL})
	}
	require.NoError(t, b.SetEndpoints(eps))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = (&host.Prober{Probe: lbhttp.ProbeURL(nil, "")}).Run(ctx, b)
	}()
	defer func() { cancel(); <-ended }()
	client := &http.Client{Transport: lbhttp.NewTransport(b)}
	require.Eventually(t, func() bool {
		resp, err := client.Do(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.NotEmpty(t, text(t, resp))
		return b.Stats().ByRegime[engine.RegimeCold] > 10
	}, 10*time.Second, time.Millisecond)
	require.NotZero(t, b.Stats().Probes.Answered)
}
