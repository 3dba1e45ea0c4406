package lbhttp_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/lbhttp"
)

// TestHedgeOverHTTP has one of three replicas hang, behind a real proxy and real connections: nobody notices, and the
// replica learns that it need not go on.
func TestHedgeOverHTTP(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	var begun, ended atomic.Int64
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		defer ended.Add(1)
		<-r.Context().Done()
	}
	served(t, b, says("ok"), hangs, says("ok"))
	tr := lbhttp.NewTransport(b, lbhttp.WithHedge(20*time.Millisecond, 100))
	s := server(t, tr.Proxy())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				resp, err := s.Client().Get(s.URL)
				if !assert.NoError(t, err) {
					return
				}
				text, err := io.ReadAll(resp.Body)
				assert.NoError(t, err)
				assert.Equal(t, "ok", string(text))
				assert.NoError(t, resp.Body.Close())
			}
		})
	}
	wg.Wait()
	require.Positive(t, begun.Load())
	require.Eventually(t, func() bool { return begun.Load() == ended.Load() && b.InFlight() == 0 }, 5*time.Second, time.Millisecond)
	stats := b.Stats()
	require.EqualValues(t, 60, stats.Outcomes[0])
	require.Zero(t, stats.Outcomes[1]+stats.Outcomes[2], "a hedge teaches nothing about whom it overtook")
	require.EqualValues(t, stats.Outcomes[3], tr.Stats().HedgesWon+tr.Stats().HedgesLost)
}
