package lbhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headroom-lb/headroom/host/lbhttp"
)

// counter is a watcher that holds its calls to their order.
type counter struct{ sent, answered, ended atomic.Int64 }

func (c *counter) Sent(string)            { c.sent.Add(1) }
func (c *counter) Answered(string, error) { c.answered.Add(1) }
func (c *counter) Ended(string)           { c.ended.Add(1) }

// client is what a caller does with one query.
type client struct {
	at, leaves time.Duration // leaves 0: never
	method     string
	body       string // of the request; replayable
	reads      int    // bytes of the answer, and then it closes
}

func drawReply(t *rapid.T) reply {
	return reply{
		after:  time.Duration(rapid.IntRange(0, 40).Draw(t, "after")) * ms,
		status: rapid.SampledFrom([]int{200, 200, 200, 0, 503, 500, 429, 404}).Draw(t, "status"),
		deaf:   rapid.Bool().Draw(t, "deaf"),
		body:   strings.Repeat("x", rapid.IntRange(0, 3).Draw(t, "body")),
		trails: time.Duration(rapid.IntRange(0, 20).Draw(t, "trails")) * ms,
		breaks: rapid.IntRange(0, 5).Draw(t, "breaks") == 0,
		panics: rapid.IntRange(0, 15).Draw(t, "panics") == 0,
	}
}

func drawClient(t *rapid.T) client {
	return client{
		at:     time.Duration(rapid.IntRange(0, 60).Draw(t, "at")) * ms,
		leaves: time.Duration(rapid.IntRange(0, 80).Draw(t, "leaves")) * ms * time.Duration(rapid.IntRange(0, 1).Draw(t, "does")),
		method: rapid.SampledFrom([]string{http.MethodGet, http.MethodGet, http.MethodGet, http.MethodPut, http.MethodPost}).Draw(t, "method"),
		body:   strings.Repeat("y", rapid.IntRange(0, 2).Draw(t, "request")),
		reads:  rapid.IntRange(0, 5).Draw(t, "reads"),
	}
}

// attemptsKeepTheirLaws runs a few queries at once, each of whose attempts does something else, and callers who may leave
// at any time.
func attemptsKeepTheirLaws(rt *rapid.T, t *testing.T) {
	replicas := rapid.IntRange(1, 5).Draw(rt, "replicas")
	retries := rapid.IntRange(0, 3).Draw(rt, "retries")
	share := rapid.SampledFrom([]int{0, 50, 100}).Draw(rt, "share")
	hedged := rapid.IntRange(0, 1).Draw(rt, "hedged")
	// Drawn ahead: the order in which attempts ask for theirs is the scheduler's.
	clients := rapid.SliceOfN(rapid.Custom(drawClient), 1, 6).Draw(rt, "clients")
	replies := rapid.SliceOfN(rapid.Custom(drawReply), 1, 12).Draw(rt, "replies")
	synctest.Test(t, func(t *testing.T) {
		b := balancer(t, "power_of_two seed=1 choices=2")
		fleetOf(t, b, replicas)
		base := &scripted{}
		base.script = func(host string, r *http.Request) reply {
			var query int
			_, _ = fmt.Sscan(r.Header.Get("X-Query"), &query)
			return replies[(query*7+len(base.attempts(r.Header.Get("X-Query"))))%len(replies)]
		}
		gate, watcher := &gatekeeper{}, &counter{}
		opts := []lbhttp.Option{lbhttp.WithBase(base), lbhttp.WithGate(gate), lbhttp.WithWatcher(watcher),
			lbhttp.WithRetries(retries, nil), lbhttp.WithRetryStatus(503), lbhttp.WithRetryBudget(share, 0)}
		if hedged == 1 {
			opts = append(opts, lbhttp.WithHedge(10*ms, share))
		}
		tr := lbhttp.NewTransport(b, opts...)
		var wg sync.WaitGroup
		for i, c := range clients {
			wg.Go(func() {
				defer func() { _ = recover() }()
				time.Sleep(c.at)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, cancel)
				}
				var body io.Reader
				if c.body != "" {
					body = strings.NewReader(c.body)
				}
				req, err := http.NewRequestWithContext(ctx, c.method, "http://shop.example/", body)
				if err != nil {
					panic(err)
				}
				req.Header.Set("X-Query", fmt.Sprint(i))
				resp, err := tr.RoundTrip(req)
				if err == nil {
					_, _ = io.CopyN(io.Discard, resp.Body, int64(c.reads))
					_ = resp.Body.Close()
				}
				req.Header.Set("X-Query", "changed") // the request is the caller's again
			})
		}
		wg.Wait()
		time.Sleep(time.Second) // those that do not listen end
		synctest.Wait()

		s := tr.Stats()
		require.Zero(t, b.InFlight(), "placements left open")
		require.Empty(t, gate.open, "permits left open")
		require.Zero(t, base.left(), "bodies left open")
		require.Equal(t, watcher.sent.Load(), watcher.ended.Load())
		require.EqualValues(t, base.sent, watcher.sent.Load())
		for i := range clients {
			tried := base.attempts(fmt.Sprint(i))
			require.LessOrEqual(t, len(tried), 1+retries+hedged)
			require.Len(t, unique(tried), len(tried), "a replica was tried twice: %v", tried)
		}
		most := int64(len(clients)*share/100 + 10)
		require.LessOrEqual(t, s.Retries, most)
		require.LessOrEqual(t, s.HedgesWon+s.HedgesLost, most)
		require.LessOrEqual(t, int64(base.sent), s.Queries+s.Retries+int64(hedged)*s.Queries)
	})
}

func TestAttemptsKeepTheirLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { attemptsKeepTheirLaws(rt, t) })
}
