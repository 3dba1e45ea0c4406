package lbhttp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/lbhttp"
)

// TestHedgeAt95th draws times of 1 ms to 1 s, evenly by their logarithm: 95 of 100 are below 708 ms. The delay finds that,
// and stays there though from then on most of those above are never seen.
func TestHedgeAt95th(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := balancer(t, "random seed=1")
		fleetOf(t, b, 5)
		random := rand.New(rand.NewPCG(1, 2))
		base := &scripted{}
		base.script = func(_ string, r *http.Request) reply {
			base.mu.Lock()
			defer base.mu.Unlock()
			return reply{after: time.Duration(float64(ms) * math.Pow(1000, random.Float64())), status: 200}
		}
		tr := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithHedge(lbhttp.HedgeAt95th, 100))
		ask := func(n int, method string) {
			for i := range n {
				req := request(t, method, nil)
				req.Header.Set("X-Query", fmt.Sprint(method, i))
				resp, err := tr.RoundTrip(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
		}
		ask(100, http.MethodPost)
		require.Zero(t, tr.Stats().HedgeAfter, "the time of what is not hedged is another matter")
		ask(31, http.MethodGet)
		require.Zero(t, tr.Stats().HedgeAfter)
		ask(1, http.MethodGet)
		require.NotZero(t, tr.Stats().HedgeAfter)
		ask(3000, http.MethodGet)
		synctest.Wait()
		s := tr.Stats()
		require.InDelta(t, 708*ms, s.HedgeAfter, float64(150*ms), "it does not run away downwards")
		require.InDelta(t, 150, s.HedgesWon+s.HedgesLost, 50, "one in twenty")
		require.Positive(t, s.HedgesWon)
		require.Zero(t, b.InFlight())
		time.Sleep(time.Minute)
		require.Zero(t, tr.Stats().HedgeAfter, "times of a minute ago say nothing")
	})
}

// TestHedgeAfterIsNeverNothing has replicas that answer at once.
func TestHedgeAfterIsNeverNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{lbhttp.HedgeAt95th, time.Microsecond} {
			c := hedging(t, 3, []lbhttp.Option{lbhttp.WithHedge(after, 100)}, reply{status: 200})
			for range 40 {
				resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
			require.Equal(t, ms, c.tr.Stats().HedgeAfter)
			require.Equal(t, 40, c.base.sent)
		}
	})
}

// TestFailuresDoNotSetThePace has replicas that fail at once: nothing is learnt from that.
func TestFailuresDoNotSetThePace(t *testing.T) {
	for name, no := range map[string]reply{"no answer": {}, "500": {status: 500}, "429": {status: 429}} {
		synctest.Test(t, func(t *testing.T) {
			c := hedging(t, 3, []lbhttp.Option{lbhttp.WithHedge(lbhttp.HedgeAt95th, 100), lbhttp.WithRetries(0, nil)}, no)
			for range 100 {
				if resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil)); err == nil {
					require.NoError(t, resp.Body.Close())
				}
			}
			require.Zero(t, c.tr.Stats().HedgeAfter, name)
		})
	}
}
