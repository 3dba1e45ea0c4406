package lbhttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

// balancer has no endpoints yet. When the test ends, no placement may be left open.
func balancer(t testing.TB, spec string) *host.Balancer {
	t.Helper()
	b, err := host.NewNativeBalancer(policy.Parse, spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, b.Close(ctx), "placements leak")
	})
	return b
}

// served gives the balancer one real server for each handler, named r0, r1, ….
func served(t testing.TB, b *host.Balancer, handlers ...http.HandlerFunc) {
	t.Helper()
	var eps []host.Endpoint
	for i, h := range handlers {
		eps = append(eps, host.Endpoint{Name: fmt.Sprintf("r%d", i), Addr: server(t, h).URL})
	}
	require.NoError(t, b.SetEndpoints(eps))
}

func server(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// refusing is an address at which nothing listens.
func refusing(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// cuts reads the request and closes the connection without an answer.
func cuts(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

func request(t testing.TB, method string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://shop.example/cart?x=1", body)
	require.NoError(t, err)
	return r
}

func text(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

// outcomes are success, failure, overloaded, cancelled.
func outcomes(t testing.TB, b *host.Balancer, success, failure, overloaded, cancelled uint64) {
	t.Helper()
	want := [4]uint64{engine.OutcomeSuccess: success, engine.OutcomeFailure: failure,
		engine.OutcomeOverloaded: overloaded, engine.OutcomeCancelled: cancelled}
	require.Eventually(t, func() bool { s := b.Stats(); return s.InFlight == 0 && s.Outcomes == want },
		5*time.Second, time.Millisecond, "want outcomes %v, have %+v", want, b.Stats())
}
