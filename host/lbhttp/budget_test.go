package lbhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/lbhttp"
)

// storm sends queries at a steady rate to five replicas that all answer 503, and returns how many attempts came.
func storm(t *testing.T, queries int, every time.Duration, opts ...lbhttp.Option) (sent int, s lbhttp.Stats) {
	b := balancer(t, "random seed=1")
	fleetOf(t, b, 5)
	base := &scripted{script: func(string, *http.Request) reply { return reply{status: 503} }}
	tr := lbhttp.NewTransport(b, append([]lbhttp.Option{lbhttp.WithBase(base), lbhttp.WithRetryStatus(503)}, opts...)...)
	for range queries {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode, "out of budget the answer is passed on")
		require.NoError(t, resp.Body.Close())
		time.Sleep(every)
	}
	require.Zero(t, base.left(), "bodies left open")
	require.Zero(t, b.InFlight())
	return base.sent, tr.Stats()
}

// TestARetryStormIsBounded holds the law of the budget under a total outage: at most a share of the queries, so many a
// second, and what was saved up.
func TestARetryStormIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		opts                []lbhttp.Option
		share, least, saved int
	}{
		"by default":    {nil, 20, 10, 100},
		"share alone":   {[]lbhttp.Option{lbhttp.WithRetryBudget(5, 0)}, 5, 0, 10},
		"least alone":   {[]lbhttp.Option{lbhttp.WithRetryBudget(0, 3)}, 0, 3, 30},
		"nothing":       {[]lbhttp.Option{lbhttp.WithRetryBudget(0, 0)}, 0, 0, 10},
		"out of range":  {[]lbhttp.Option{lbhttp.WithRetryBudget(-3, -3)}, 0, 0, 10},
		"many at least": {[]lbhttp.Option{lbhttp.WithRetryBudget(0, 50)}, 0, 50, 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queries, seconds := 20_000, 20
				if testing.Short() {
					queries, seconds = 4000, 4
				}
				sent, s := storm(t, queries, time.Millisecond, c.opts...)
				most := queries*c.share/100 + seconds*c.least + c.saved
				require.LessOrEqual(t, sent-queries, most)
				require.GreaterOrEqual(t, sent-queries, most*99/100, "what the budget allows is used")
				require.EqualValues(t, queries, s.Queries)
				require.EqualValues(t, sent-queries, s.Retries)
				require.Positive(t, s.RetriesRefused)
			})
		})
	}
	t.Run("without a bound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sent, s := storm(t, 1000, time.Millisecond, lbhttp.WithRetryBudget(100, 1_000_000))
			require.Equal(t, 3000, sent, "the storm that the others are spared")
			require.Zero(t, s.RetriesRefused)
		})
	})
}

// TestABudgetIsSavedUpAndNoFurther lets the budget run dry, and time pass.
func TestABudgetIsSavedUpAndNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := balancer(t, "random seed=1")
		fleetOf(t, b, 5)
		base := &scripted{script: func(string, *http.Request) reply { return reply{status: 503} }}
		tr := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetryStatus(503), lbhttp.WithRetryBudget(0, 2))
		retried := func() int64 {
			before := tr.Stats().Retries
			for range 50 {
				resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
			return tr.Stats().Retries - before
		}
		require.EqualValues(t, 20, retried(), "it begins full")
		require.Zero(t, retried())
		time.Sleep(1500 * time.Millisecond)
		require.EqualValues(t, 3, retried())
		time.Sleep(time.Hour)
		require.EqualValues(t, 20, retried())
	})
	t.Run("by queries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := balancer(t, "random seed=1")
			fleetOf(t, b, 5)
			answer := reply{status: 200}
			base := &scripted{script: func(string, *http.Request) reply { return answer }}
			tr := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetryStatus(503), lbhttp.WithRetryBudget(50, 0))
			ask := func(n int) {
				for range n {
					resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
				}
			}
			ask(1000)
			answer.status = 503
			ask(20)
			require.LessOrEqual(t, tr.Stats().Retries, int64(20), "a long calm pays for ten, and for half of the twenty")
			require.GreaterOrEqual(t, tr.Stats().Retries, int64(19))
		})
	})
}

// TestARetryThatFindsNobodyCostsNothing has one replica only: the budget stays for others.
func TestARetryThatFindsNobodyCostsNothing(t *testing.T) {
	b := balancer(t, "random seed=1")
	fleetOf(t, b, 1)
	base := &scripted{script: func(string, *http.Request) reply { return reply{status: 503} }}
	tr := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetryStatus(503), lbhttp.WithRetryBudget(0, 0))
	fail := func() {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	for range 50 {
		fail()
	}
	require.Zero(t, tr.Stats().Retries)
	require.Zero(t, tr.Stats().RetriesRefused)
	fleetOf(t, b, 2)
	for range 50 {
		fail()
	}
	require.EqualValues(t, 10, tr.Stats().Retries)
}

// TestRetryStatus holds which answers are retried, and what becomes of the last one.
func TestRetryStatus(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		key    bool
		again  bool
	}{
		"GET":                  {method: http.MethodGet, again: true},
		"PUT, replayable":      {http.MethodPut, strings.NewReader("x"), false, true},
		"PUT, not replayable":  {http.MethodPut, io.NopCloser(strings.NewReader("x")), false, false},
		"POST":                 {http.MethodPost, strings.NewReader("x"), false, false},
		"POST without a body":  {method: http.MethodPost},
		"POST with a key":      {http.MethodPost, strings.NewReader("x"), true, true},
		"PATCH":                {method: http.MethodPatch},
		"DELETE":               {method: http.MethodDelete, again: true},
		"POST, not replayable": {http.MethodPost, io.NopCloser(strings.NewReader("x")), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "round_robin seed=1")
			fleetOf(t, b, 3)
			first := true
			base := &scripted{script: func(string, *http.Request) reply {
				defer func() { first = false }()
				if first {
					return reply{status: 503, body: "busy"}
				}
				return reply{status: 200, body: "fine"}
			}}
			req := request(t, c.method, c.body)
			if c.key {
				req.Header.Set("Idempotency-Key", "7")
			}
			resp, err := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetryStatus(502, 503)).RoundTrip(req)
			require.NoError(t, err)
			if c.again {
				require.Equal(t, "fine", text(t, resp))
				outcomes(t, b, 1, 1, 0, 0)
			} else {
				require.Equal(t, "busy", text(t, resp))
				outcomes(t, b, 0, 1, 0, 0)
			}
			require.Eventually(t, func() bool { return base.left() == 0 }, 5*time.Second, time.Millisecond)
		})
	}
	t.Run("other statuses are answers", func(t *testing.T) {
		b := balancer(t, "round_robin seed=1")
		fleetOf(t, b, 3)
		base := &scripted{script: func(string, *http.Request) reply { return reply{status: 500} }}
		resp, err := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetryStatus(502, 503)).RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 1, base.sent)
	})
	t.Run("each replica once, and the last one's Retry-After is passed on", func(t *testing.T) {
		b := balancer(t, "round_robin seed=1")
		busy := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "busy", http.StatusTooManyRequests)
		}
		served(t, b, busy, busy)
		tr := lbhttp.NewTransport(b, lbhttp.WithRetries(9, nil), lbhttp.WithRetryStatus(429))
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, "7", resp.Header.Get("Retry-After"))
		require.Equal(t, "busy\n", text(t, resp))
		outcomes(t, b, 0, 0, 2, 0)
	})
}

// TestNobodyIsTriedTwice has many retries and few replicas.
func TestNobodyIsTriedTwice(t *testing.T) {
	b := balancer(t, "power_of_two seed=1 choices=2")
	fleetOf(t, b, 7)
	base := &scripted{script: func(string, *http.Request) reply { return reply{status: 0} }}
	tr := lbhttp.NewTransport(b, lbhttp.WithBase(base), lbhttp.WithRetries(32, nil), lbhttp.WithRetryBudget(100, 1_000_000))
	for i := range 50 {
		req := request(t, http.MethodGet, nil)
		req.Header.Set("X-Query", fmt.Sprint(i))
		_, err := tr.RoundTrip(req)
		require.Error(t, err)
		require.ElementsMatch(t, []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6"}, base.attempts(fmt.Sprint(i)))
	}
}
