package lbhttp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
	"github.com/headroom-lb/headroom/host/replica"
)

// cache is a real replica that reports a tenth of its load for the hints whose data it has.
func cache(t testing.TB, name string, has map[string]bool) *httptest.Server {
	t.Helper()
	m, err := replica.NewMonitor(probe.EstimatorConfig{}, replica.WithHints(func(hint string) int {
		if has[hint] {
			return 1000
		}
		return replica.ScaleSame
	}))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, m.ProbeHandler())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(4 * time.Millisecond)
		_, _ = io.WriteString(w, name)
	})
	return server(t, m.Middleware(mux))
}

// synchronous gives a balancer that probes for each query over HTTP, and waits long enough for a
// busy machine under test.
func synchronous(t testing.TB, spec string, wait time.Duration, addrs ...string) *host.Balancer {
	t.Helper()
	b, err := host.NewNativeBalancer(policy.Parse, spec, host.WithProbeWait(wait))
	require.NoError(t, err)
	var eps []host.Endpoint
	for i, addr := range addrs {
		eps = append(eps, host.Endpoint{Name: fmt.Sprintf("r%d", i), Addr: addr})
	}
	require.NoError(t, b.SetEndpoints(eps))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = (&host.Prober{Probe: lbhttp.ProbeURL(nil, "")}).Run(ctx, b)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, b.Close(ctx), "placements leak")
	})
	for tickets := false; !tickets; time.Sleep(time.Millisecond) { // until the prober runs
		p, err := b.Decide(ctx, host.Query{})
		require.NoError(t, err)
		p.Done(engine.OutcomeCancelled)
		tickets = b.Stats().Probes.Answered > 0
	}
	return b
}

// TestACachedQueryGoesWhereItIsCached sends queries for four keys, each cached at one of four replicas, through the
// proxy: they find it. Without the hint they spread.
func TestACachedQueryGoesWhereItIsCached(t *testing.T) {
	var addrs []string
	for i := range 4 {
		addrs = append(addrs, cache(t, fmt.Sprintf("r%d", i), map[string]bool{fmt.Sprintf("key-%d", i): true}).URL)
	}
	b := synchronous(t, "prequal seed=1 mode=sync probes=4 wait=4", 2*time.Second, addrs...)
	ask := func(proxy, key string) (by string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy, nil)
		require.NoError(t, err)
		req.Header.Set("X-Key", key)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		return text(t, resp)
	}
	hinting := server(t, lbhttp.NewProxy(b, lbhttp.WithHint(func(r *http.Request) string { return r.Header.Get("X-Key") })))
	silent := server(t, lbhttp.NewProxy(b))
	for range 4 { // every replica needs a latency of its own before a tenth of it can attract
		for _, addr := range addrs {
			resp, err := http.Get(addr)
			require.NoError(t, err)
			text(t, resp)
		}
	}
	for _, c := range []struct {
		proxy       string
		least, most int
	}{{hinting.URL, 150, 160}, {silent.URL, 0, 120}} {
		found := 0
		for i := range 160 {
			if ask(c.proxy, fmt.Sprintf("key-%d", i%4)) == fmt.Sprintf("r%d", i%4) {
				found++
			}
		}
		require.GreaterOrEqual(t, found, c.least)
		require.LessOrEqual(t, found, c.most)
	}
	require.Zero(t, b.Stats().Probes.Failed)
}

// TestADeadReplicaDelaysNobodyBeyondTheWait has one replica that accepts connections and never answers, one that
// refuses them, and two that work.
func TestADeadReplicaDelaysNobodyBeyondTheWait(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	a, b := cache(t, "r0", nil), cache(t, "r1", nil)
	const wait = 150 * time.Millisecond
	lb := synchronous(t, "prequal seed=1 mode=sync probes=4 wait=4", wait, a.URL, b.URL, "http://"+silent.Addr().String(), refusing(t))
	for range 20 {
		began := time.Now()
		p, err := lb.Decide(t.Context(), host.Query{})
		took := time.Since(began)
		require.NoError(t, err)
		p.Done(engine.OutcomeSuccess)
		require.GreaterOrEqual(t, took, wait, "it waits for a fourth answer")
		require.Less(t, took, wait+time.Second)
		require.Equal(t, uint32(2), p.Decision.Offered, "both that work have answered, and it decides between them")
		require.Contains(t, []string{"r0", "r1"}, p.Endpoint.Name)
	}
	// The usual setting waits for one answer less, and the dead one costs hardly anything.
	lb = synchronous(t, "prequal seed=1 mode=sync", 2*time.Second, a.URL, b.URL, "http://"+silent.Addr().String())
	for range 20 {
		began := time.Now()
		p, err := lb.Decide(t.Context(), host.Query{})
		require.NoError(t, err)
		p.Done(engine.OutcomeSuccess)
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, uint32(2), p.Decision.Offered)
	}
}

// TestSyncQueriesLeaveNoGoroutines ends with as many goroutines as it began with, hung probes and callers who left
// included.
func TestSyncQueriesLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("traffic", func(t *testing.T) {
		hung := make(chan struct{})
		t.Cleanup(func() { close(hung) })
		h := server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-hung:
			}
		}))
		b := synchronous(t, "prequal seed=1 mode=sync", 5*time.Millisecond, cache(t, "r0", nil).URL, cache(t, "r1", nil).URL, h.URL)
		tr := lbhttp.NewTransport(b)
		t.Cleanup(tr.CloseIdleConnections)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop.example/", nil)
				assert.NoError(t, err)
				if resp, err := tr.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		wg.Wait()
	})
	http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second, 10*time.Millisecond, "%d goroutines, %d before", runtime.NumGoroutine(), before)
}
