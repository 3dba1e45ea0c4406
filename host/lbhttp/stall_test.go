package lbhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

// A replica in trouble may send the head of a refusal and then nothing. Its connection is not
// worth waiting for.
func TestARetryDoesNotWaitForTheBodyOfWhatFailed(t *testing.T) {
	over := make(chan struct{})
	stalling := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
		w.(http.Flusher).Flush()
		<-over
	}))
	defer stalling.Close()
	defer close(over)
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer good.Close()
	b, err := host.NewNativeBalancer(policy.Parse, "round_robin seed=1")
	require.NoError(t, err)
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "stalling", Addr: stalling.URL}, {Name: "good", Addr: good.URL}}))
	client := http.Client{Transport: lbhttp.NewTransport(b, lbhttp.WithRetries(1, func(_ *http.Request, resp *http.Response, err error) bool {
		return err != nil || resp.StatusCode == http.StatusServiceUnavailable
	}))}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for range 2 { // each is first once
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service/", http.NoBody)
		require.NoError(t, err)
		began := time.Now()
		resp, err := client.Do(req)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Less(t, time.Since(began), 2*time.Second)
		require.NoError(t, resp.Body.Close())
	}
}
