package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	headroom "github.com/headroom-lb/headroom/host/observe/prometheus"
)

func balancerOf(t *testing.T, spec string, urls ...string) *host.Balancer {
	t.Helper()
	b, err := host.NewNativeBalancer(policy.Parse, spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	eps := make([]host.Endpoint, len(urls))
	for i, u := range urls {
		eps[i] = host.Endpoint{Name: fmt.Sprintf("r%d", i), Addr: u}
	}
	require.NoError(t, b.SetEndpoints(eps))
	return b
}

// watchOf watches a balancer's endpoints, without checks and circuits.
func watchOf(t *testing.T, b *host.Balancer) *watch {
	t.Helper()
	var c Config
	for _, e := range b.Endpoints() {
		c.Endpoints = append(c.Endpoints, Endpoint{Name: e.Name, URL: e.Addr})
	}
	w, err := newWatch(b, c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return w
}

// fleetOf is one route for everything, as Run makes it.
func fleetOf(c Config, b *host.Balancer, e *engines, w *watch) *fleet {
	log := slog.New(slog.DiscardHandler)
	f := newFleet(log, newRegistry(), false)
	f.serve([]placed{{Match{}, assemble(onlyRoute, c, b, e, w, log)}}, 0)
	return f
}

// adminOf is the admin listener of one route.
func adminOf(b *host.Balancer, w *watch) http.Handler {
	return newAdmin(fleetOf(Config{}, b, &engines{}, w), new(atomic.Bool), nil, "")
}

func ask(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestReadiness(t *testing.T) {
	b := balancerOf(t, "random seed=1", "http://a", "http://b")
	var draining atomic.Bool
	w := watchOf(t, b)
	h := newAdmin(fleetOf(Config{}, b, &engines{}, w), &draining, nil, "")
	code, _ := ask(h, "GET", "/readyz", "")
	require.Equal(t, 200, code)
	for _, name := range []string{"r0", "r1"} {
		code, body := ask(h, "POST", "/status", `{"endpoint":"`+name+`","status":"unavailable"}`)
		require.Equal(t, 200, code, body)
	}
	code, body := ask(h, "GET", "/readyz", "")
	require.Equal(t, 503, code)
	require.Equal(t, "no endpoint is ready\n", body)
	require.NoError(t, b.SetStatus("r1", engine.StatusReady))
	draining.Store(true)
	code, body = ask(h, "GET", "/readyz", "")
	require.Equal(t, 503, code)
	require.Equal(t, "draining\n", body)
	code, _ = ask(h, "GET", "/healthz", "")
	require.Equal(t, 200, code, "a draining process still lives")
}

// TestAdminRefusesOtherSites sends what a page of another site could make an operator's browser send.
func TestAdminRefusesOtherSites(t *testing.T) {
	b := balancerOf(t, "random seed=1", "http://a")
	watch := watchOf(t, b)
	h := adminOf(b, watch)
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere.example"} {
		r := httptest.NewRequest("POST", "/status", strings.NewReader(`{"endpoint":"r0","status":"unavailable"}`))
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, 403, w.Code, header)
	}
	require.Equal(t, engine.StatusReady, b.Endpoints()[0].Status)
	code, body := ask(h, "POST", "/status", "endpoint=r0&status=draining")
	require.Equal(t, 400, code)
	require.Contains(t, body, "the body is not the JSON expected")
}

// TestPoolShowsWhatTheEngineHolds records readings and finds them again, as reported and as ranked.
func TestPoolShowsWhatTheEngineHolds(t *testing.T) {
	b := balancerOf(t, "prequal seed=1", "http://a", "http://b", "http://c")
	require.NoError(t, b.Record("r0", engine.Reading{RIF: 7, Latency: 5 * engine.Millisecond}))
	require.NoError(t, b.Record("r2", engine.Reading{RIF: 2, Latency: engine.UnknownLatency}))
	watch := watchOf(t, b)
	h := adminOf(b, watch)
	code, body := ask(h, "GET", "/pool", "")
	require.Equal(t, 200, code)
	var v view
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.Len(t, v.Endpoints, 3)
	require.Equal(t, endpointView{Name: "r0", URL: "http://a", Status: "ready"}, v.Endpoints[0])
	require.Len(t, v.Entries, 2)
	require.Equal(t, "r0", v.Entries[0].Endpoint)
	require.EqualValues(t, 7, v.Entries[0].RawRIF)
	require.InDelta(t, 5, *v.Entries[0].RawLatencyMS, 1e-9)
	require.Equal(t, "r2", v.Entries[1].Endpoint)
	require.Nil(t, v.Entries[1].RawLatencyMS, "an unknown latency is null, not a number")
	require.EqualValues(t, 2, v.PoolEvents["admitted"])
	require.True(t, v.Fit.SmallFleet)

	_, metrics := ask(h, "GET", "/metrics", "")
	require.Contains(t, metrics, `headroom_pool_events_total{event="admitted"} 2`)
	require.Contains(t, metrics, "headroom_pool_entries 2")
	require.Contains(t, metrics, `headroom_fallbacks_total{cause="trap"} 0`, "every series is there before it counts")
}

// TestUpgradePassesTheInstrumentedProxy speaks over a hijacked connection through all handlers of the proxy: a
// wrapper that hides the connection would break WebSockets.
func TestUpgradePassesTheInstrumentedProxy(t *testing.T) {
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("heard " + line)
		_ = rw.Flush()
	}))
	defer replica.Close()
	b := balancerOf(t, "round_robin seed=1", replica.URL)
	w := watchOf(t, b)
	proxy := httptest.NewServer(headroom.Instrument(newRegistry(), newProxy(b, w, Config{}, slog.New(slog.NewTextHandler(io.Discard, nil)))))
	defer proxy.Close()

	conn, err := net.Dial("tcp", strings.TrimPrefix(proxy.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "heard hello\n", line)
}
