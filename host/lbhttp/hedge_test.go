package lbhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

const ms = time.Millisecond

// hedgeCase is a fleet whose replicas answer a query's attempts in order: the first attempt as the first reply says,
// and so on, whichever replica it goes to.
type hedgeCase struct {
	b    *host.Balancer
	base *scripted
	tr   *lbhttp.Transport
	gate *gatekeeper
}

func hedging(t *testing.T, replicas int, opts []lbhttp.Option, replies ...reply) *hedgeCase {
	t.Helper()
	b := balancer(t, "round_robin seed=1")
	fleetOf(t, b, replicas)
	var n atomic.Int32
	base := &scripted{script: func(string, *http.Request) reply { return replies[int(n.Add(1)-1)%len(replies)] }}
	g := &gatekeeper{}
	opts = append([]lbhttp.Option{lbhttp.WithBase(base), lbhttp.WithHedge(10*ms, 100), lbhttp.WithGate(g)}, opts...)
	return &hedgeCase{b, base, lbhttp.NewTransport(b, opts...), g}
}

// over requires that nothing is left behind, and how attempts ended: success, failure, overloaded, cancelled.
func (c *hedgeCase) over(t *testing.T, ended ...uint64) {
	t.Helper()
	synctest.Wait()
	require.Zero(t, c.base.left(), "bodies left open")
	require.Zero(t, c.b.InFlight(), "placements left open")
	require.Empty(t, c.gate.open, "permits not given back")
	s := c.b.Stats()
	require.Equal(t, ended, s.Outcomes[:])
	require.Len(t, c.base.attempts(""), len(unique(c.base.attempts(""))), "a replica was tried twice")
}

func unique(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

func TestHedgeOvertakes(t *testing.T) {
	for name, loser := range map[string]reply{
		"what hangs":                       {after: time.Hour, status: 200},
		"what is slow and does not listen": {after: 50 * ms, status: 200, body: "slow", deaf: true},
		"what fails later":                 {after: 50 * ms, deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hedging(t, 3, nil, loser, reply{after: 5 * ms, status: 200, body: "quick", trails: 100 * ms})
				began := time.Now()
				resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				if !loser.deaf {
					require.Equal(t, 15*ms, time.Since(began))
				}
				require.EqualValues(t, 1, c.b.InFlight(), "the winner's alone, until its body ends")
				require.Equal(t, "quick", text(t, resp), "its request lives on")
				c.over(t, 1, 0, 0, 1)
				require.Equal(t, lbhttp.Stats{Queries: 1, HedgesWon: 1, HedgeAfter: 10 * ms}, c.tr.Stats())
			})
		})
	}
}

func TestHedgeIsOvertaken(t *testing.T) {
	for name, loser := range map[string]reply{
		"hangs":                       {after: time.Hour, status: 200},
		"answers late, not listening": {after: 50 * ms, status: 200, body: "late", deaf: true},
		"fails late, not listening":   {after: 50 * ms, deaf: true},
		"panics late":                 {after: 50 * ms, deaf: true, panics: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hedging(t, 3, nil, reply{after: 15 * ms, status: 200, body: "first", trails: 10 * ms}, loser)
				began := time.Now()
				resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				require.Equal(t, 15*ms, time.Since(began))
				require.Equal(t, "first", text(t, resp))
				time.Sleep(time.Second)
				c.over(t, 1, 0, 0, 1)
				if !loser.panics {
					require.Equal(t, lbhttp.Stats{Queries: 1, HedgesLost: 1, HedgeAfter: 10 * ms}, c.tr.Stats())
				}
			})
		})
	}
}

// TestHedgeThatFailsDoesNotWin: the slow answer is better than a quick error.
func TestHedgeThatFailsDoesNotWin(t *testing.T) {
	for name, c := range map[string]struct {
		hedge reply
		opts  []lbhttp.Option
		ended []uint64
	}{
		"no answer":           {reply{}, nil, []uint64{1, 1, 0, 0}},
		"500":                 {reply{status: 500, body: "no"}, nil, []uint64{1, 1, 0, 0}},
		"429":                 {reply{status: 429, body: "no"}, nil, []uint64{1, 0, 1, 0}},
		"404 that is retried": {reply{status: 404, body: "no"}, []lbhttp.Option{lbhttp.WithRetryStatus(404)}, []uint64{2, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hedging(t, 3, c.opts, reply{after: 50 * ms, status: 200, body: "slow"}, c.hedge)
				resp, err := h.tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				require.Equal(t, "slow", text(t, resp))
				time.Sleep(time.Second)
				h.over(t, c.ended...)
				require.EqualValues(t, 1, h.tr.Stats().HedgesLost)
			})
		})
	}
}

// TestHedgeOvertakenAtWork: the answer comes while the hedge is being placed, or while its failure is told.
func TestHedgeOvertakenAtWork(t *testing.T) {
	t.Run("placed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := &gatekeeper{}
			c := hedging(t, 3, []lbhttp.Option{lbhttp.WithGate(slowGate{g})}, reply{after: 20 * ms, status: 200})
			resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(time.Second)
			c.over(t, 1, 0, 0, 1)
			require.Empty(t, g.open)
			require.Equal(t, 1, c.base.sent, "nothing is sent any more")
			require.Equal(t, lbhttp.Stats{Queries: 1, HedgeAfter: 10 * ms}, c.tr.Stats())
		})
	})
	t.Run("told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := lbhttp.WithOutcome(func(resp *http.Response, err error) engine.Outcome {
				if resp.StatusCode == 500 {
					time.Sleep(50 * ms)
				}
				return lbhttp.DefaultOutcome(resp, err)
			})
			c := hedging(t, 3, []lbhttp.Option{slow}, reply{after: 20 * ms, status: 200}, reply{status: 500, body: "no"})
			resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(time.Second)
			c.over(t, 1, 1, 0, 0)
		})
	})
}

// slowGate takes 15 ms to admit.
type slowGate struct{ *gatekeeper }

func (g slowGate) Admit(endpoint string) (uint64, bool) {
	time.Sleep(15 * ms)
	return g.gatekeeper.Admit(endpoint)
}

// TestHedgeMendsAFailure: the first attempt fails while the hedge is under way. No retry is needed.
func TestHedgeMendsAFailure(t *testing.T) {
	for name, first := range map[string]reply{"no answer": {after: 20 * ms}, "503": {after: 20 * ms, status: 503, body: "no"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hedging(t, 3, []lbhttp.Option{lbhttp.WithRetryStatus(503)}, first, reply{after: 50 * ms, status: 200, body: "hedge"})
				resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
				require.NoError(t, err)
				require.Equal(t, "hedge", text(t, resp))
				c.over(t, 1, 1, 0, 0)
				require.Equal(t, lbhttp.Stats{Queries: 1, HedgesWon: 1, HedgeAfter: 10 * ms}, c.tr.Stats())
			})
		})
	}
}

func TestHedgeAndFirstBothFail(t *testing.T) {
	no, busy := reply{after: 20 * ms}, reply{after: 20 * ms, status: 500, body: "first"}
	other := reply{after: 20 * ms, status: 500, body: "second"}
	none := []lbhttp.Option{lbhttp.WithRetries(0, nil)}
	synctest.Test(t, func(t *testing.T) {
		c := hedging(t, 3, none, no, no)
		_, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
		var failed *lbhttp.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 2, failed.Attempts)
		require.Equal(t, c.base.attempts("")[0], failed.Endpoint, "the first error")
		c.over(t, 0, 2, 0, 0)
	})
	for name, replies := range map[string][]reply{"first": {busy, other}, "second": {no, other}} {
		synctest.Test(t, func(t *testing.T) {
			c := hedging(t, 3, none, replies...)
			resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.Equal(t, name, text(t, resp), "an answer before an error, then the first")
			time.Sleep(time.Second)
			c.over(t, 0, 2, 0, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := hedging(t, 4, nil, no, no, reply{status: 200, body: "third", after: time.Minute})
		resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, "third", text(t, resp), "a retry goes past both, and is not hedged again")
		c.over(t, 1, 2, 0, 0)
		require.Equal(t, lbhttp.Stats{Queries: 1, Retries: 1, HedgesLost: 1, HedgeAfter: 10 * ms}, c.tr.Stats())
	})
}

// TestHedgeOfARetry: what is slow is the retry.
func TestHedgeOfARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hedging(t, 3, nil, reply{}, reply{after: time.Hour}, reply{status: 200, body: "third"})
		resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, "third", text(t, resp))
		c.over(t, 1, 1, 0, 1)
	})
}

func TestHedgeCallerLeaves(t *testing.T) {
	for name, at := range map[string]time.Duration{"before the hedge": 5 * ms, "during it": 15 * ms, "in the body": 40 * ms} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hedging(t, 3, nil, reply{after: time.Hour}, reply{after: 20 * ms, status: 200, body: "x", trails: time.Hour})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(at, cancel)
				resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil).WithContext(ctx))
				if name != "in the body" {
					require.ErrorIs(t, err, context.Canceled)
					c.over(t, []uint64{0, 0, 0, uint64(c.base.sent)}...)
					return
				}
				require.NoError(t, err)
				_, err = io.ReadAll(resp.Body)
				require.ErrorIs(t, err, context.Canceled)
				require.NoError(t, resp.Body.Close())
				c.over(t, 0, 0, 0, 2)
			})
		})
	}
}

// TestHedgeOnlyWhatMayBeSentTwice is patient with everything else.
func TestHedgeOnlyWhatMayBeSentTwice(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		header http.Header
		twice  bool
	}{
		"GET":                   {method: http.MethodGet, twice: true},
		"HEAD":                  {method: http.MethodHead, twice: true},
		"OPTIONS":               {method: http.MethodOptions, twice: true},
		"GET with a small body": {method: http.MethodGet, body: strings.NewReader("query"), twice: true},
		"GET with a large body": {method: http.MethodGet, body: bytes.NewReader(make([]byte, 64<<10+1))},
		"GET with a stream":     {method: http.MethodGet, body: io.NopCloser(strings.NewReader("query"))},
		"an upgrade":            {method: http.MethodGet, header: http.Header{"Connection": {"upgrade"}, "Upgrade": {"websocket"}}},
		"PUT":                   {method: http.MethodPut, body: strings.NewReader("x")},
		"DELETE":                {method: http.MethodDelete},
		"POST with a key":       {method: http.MethodPost, header: http.Header{"Idempotency-Key": {"7"}}},
		"CONNECT":               {method: http.MethodConnect},
		"a method of one's own": {method: "PURGE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies atomic.Int32
				h := hedging(t, 3, nil, reply{after: 50 * ms, status: 200})
				script := h.base.script
				h.base.script = func(host string, r *http.Request) reply {
					if r.Body != nil && r.Body != http.NoBody {
						bodies.Add(1)
					}
					return script(host, r)
				}
				req := request(t, c.method, c.body)
				for k, v := range c.header {
					req.Header[k] = v
				}
				resp, err := h.tr.RoundTrip(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				if c.twice {
					h.over(t, 1, 0, 0, 1)
				} else {
					h.over(t, 1, 0, 0, 0)
				}
				if c.body != nil {
					require.EqualValues(t, h.base.sent, bodies.Load(), "each attempt has a body of its own")
				}
			})
		})
	}
}

// TestHedgesAreBudgeted: at most a share of the queries, and ten that are saved up.
func TestHedgesAreBudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hedging(t, 3, []lbhttp.Option{lbhttp.WithHedge(10*ms, 5)}, reply{after: 20 * ms, status: 200})
		const queries = 1000
		for range queries {
			resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		synctest.Wait()
		const most = queries*5/100 + 10
		require.LessOrEqual(t, c.base.sent, queries+most)
		require.GreaterOrEqual(t, c.base.sent, queries+most-1, "what the budget allows is used")
		s := c.tr.Stats()
		require.EqualValues(t, c.base.sent-queries, s.HedgesWon+s.HedgesLost)
		require.EqualValues(t, queries, s.HedgesWon+s.HedgesLost+s.HedgesRefused)
		require.Zero(t, c.b.InFlight())
	})
}

// TestHedgeWithNobodyElse leaves one attempt alone, and keeps the budget.
func TestHedgeWithNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hedging(t, 1, []lbhttp.Option{lbhttp.WithHedge(10*ms, 0)}, reply{after: 20 * ms, status: 200}, reply{after: 20 * ms})
		for range 50 {
			resp, err := c.tr.RoundTrip(request(t, http.MethodGet, nil))
			if err == nil {
				require.NoError(t, resp.Body.Close())
			}
		}
		synctest.Wait()
		require.Equal(t, lbhttp.Stats{Queries: 50, HedgeAfter: 10 * ms}, c.tr.Stats())
		require.Zero(t, c.b.InFlight())
	})
}

func TestHedgeWithoutABodyToBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hedging(t, 3, nil, reply{after: 50 * ms, status: 200})
		req := request(t, http.MethodGet, strings.NewReader("x"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		resp, err := h.tr.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		h.over(t, 1, 0, 0, 0)
	})
}
