package lbhttp_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

func TestTransportSpreads(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	seen := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, name+" "+r.Host+r.RequestURI) }
	}
	served(t, b, seen("a"), seen("b"), seen("c"))
	client := &http.Client{Transport: lbhttp.NewTransport(b)}
	count := map[string]int{}
	for range 30 {
		req := request(t, http.MethodGet, nil)
		before := *req.URL
		resp, err := client.Do(req)
		require.NoError(t, err)
		count[text(t, resp)]++
		require.Equal(t, before, *req.URL, "the caller's request is left alone")
		require.Same(t, req, resp.Request)
	}
	require.Equal(t, map[string]int{
		"a shop.example/cart?x=1": 10, "b shop.example/cart?x=1": 10, "c shop.example/cart?x=1": 10,
	}, count)
	outcomes(t, b, 30, 0, 0, 0)
}

func TestTransportEndsAtTheEndOfTheBody(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *http.Response){
		"read":         func(t *testing.T, r *http.Response) { require.Equal(t, "ab", text(t, r)) },
		"closed early": func(t *testing.T, r *http.Response) { require.NoError(t, r.Body.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "random seed=1")
			more := make(chan struct{})
			served(t, b, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "a")
				w.(http.Flusher).Flush()
				select {
				case <-more:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "b")
			})
			resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.Equal(t, int64(1), b.Stats().InFlight, "headers do not end a query")
			if name == "read" {
				close(more)
			}
			end(t, resp)
			outcomes(t, b, 1, 0, 0, 0)
			require.NoError(t, resp.Body.Close())
			outcomes(t, b, 1, 0, 0, 0)
		})
	}
}

func TestTransportCallerGivesUp(t *testing.T) {
	stuck := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	half := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	t.Run("before the answer", func(t *testing.T) {
		b := balancer(t, "random seed=1")
		served(t, b, stuck, stuck)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		outcomes(t, b, 0, 0, 0, 1)
		_, err = lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, lbhttp.ErrNotPlaced)
	})
	t.Run("during the answer", func(t *testing.T) {
		b := balancer(t, "random seed=1")
		served(t, b, half)
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil).WithContext(ctx))
		require.NoError(t, err)
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, context.Canceled)
		outcomes(t, b, 0, 0, 0, 1)
		require.NoError(t, resp.Body.Close())
	})
	t.Run("closing after cancelling", func(t *testing.T) {
		b := balancer(t, "random seed=1")
		served(t, b, half)
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil).WithContext(ctx))
		require.NoError(t, err)
		cancel()
		_ = resp.Body.Close()
		outcomes(t, b, 0, 0, 0, 1)
	})
	t.Run("out of time", func(t *testing.T) {
		b := balancer(t, "random seed=1")
		served(t, b, stuck, stuck)
		client := &http.Client{Transport: lbhttp.NewTransport(b), Timeout: 20 * time.Millisecond}
		_, err := client.Do(request(t, http.MethodGet, nil))
		var timeout interface{ Timeout() bool }
		require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
		outcomes(t, b, 0, 1, 0, 0)
	})
}

func TestTransportOutcomes(t *testing.T) {
	for code, want := range map[int][4]uint64{
		200: {1, 0, 0, 0}, 204: {1, 0, 0, 0}, 304: {1, 0, 0, 0}, 404: {1, 0, 0, 0},
		429: {0, 0, 1, 0}, 500: {0, 1, 0, 0}, 503: {0, 1, 0, 0},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			b := balancer(t, "random seed=1")
			served(t, b, status(code))
			resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, method, nil))
			require.NoError(t, err)
			require.Equal(t, code, resp.StatusCode)
			if method == http.MethodHead {
				require.Zero(t, b.Stats().InFlight, "no body to wait for")
			}
			require.Empty(t, text(t, resp))
			outcomes(t, b, want[0], want[1], want[2], want[3])
		}
	}
}

func TestTransportBodyBreaksOff(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "only this")
	})
	resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil))
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	outcomes(t, b, 0, 1, 0, 0)
	_ = resp.Body.Close()
}

func TestTransportWithOutcomeOncePerAttempt(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	served(t, b, status(503), status(503), status(503))
	var calls int
	tr := lbhttp.NewTransport(b,
		lbhttp.WithRetries(9, func(_ *http.Request, resp *http.Response, err error) bool {
			return err == nil && resp.StatusCode == 503
		}),
		lbhttp.WithOutcome(func(*http.Response, error) engine.Outcome { calls++; return engine.OutcomeOverloaded }))
	resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
	require.NoError(t, err)
	require.Equal(t, 503, resp.StatusCode)
	require.Empty(t, text(t, resp))
	require.Equal(t, 3, calls)
	outcomes(t, b, 0, 0, 3, 0)
}

func TestTransportNobodyToServe(t *testing.T) {
	b := balancer(t, "random seed=1")
	body := &closing{Reader: strings.NewReader("x")}
	_, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodPost, body))
	require.ErrorIs(t, err, lbhttp.ErrNotPlaced)
	require.ErrorIs(t, err, engine.ErrNoCandidates)
	require.True(t, body.closed, "the body is closed even on errors")

	served(t, b, says("never"))
	require.NoError(t, b.SetStatus("r0", engine.StatusDraining))
	_, err = lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil))
	require.ErrorIs(t, err, lbhttp.ErrNotPlaced)
	require.ErrorIs(t, err, engine.ErrNoneEligible)
}

// closing hides its reader from http.NewRequest, so that there is no GetBody.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func (c *closing) Read(p []byte) (int, error) {
	if c.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return c.Reader.Read(p)
}

func TestTransportAddresses(t *testing.T) {
	b := balancer(t, "random seed=1")
	s := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+" "+r.RequestURI) }))
	bare := strings.TrimPrefix(s.URL, "http://")
	for addr, want := range map[string]string{
		s.URL:            "shop.example /cart?x=1",
		bare:             "shop.example /cart?x=1",
		s.URL + "/":      "shop.example /cart?x=1",
		s.URL + "/v1/":   "shop.example /v1/cart?x=1",
		s.URL + "/a%2Fb": "shop.example /a%2Fb/cart?x=1",
	} {
		require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: addr}}))
		resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err, addr)
		require.Equal(t, want, text(t, resp), addr)
	}
	resp, err := lbhttp.NewTransport(b, lbhttp.WithEndpointHost()).RoundTrip(request(t, http.MethodGet, nil))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(text(t, resp), bare))
	for _, addr := range []string{"", "ftp://x", "http://", "http://u:p@h", "http://h?x", "http://h/#f", "http://[::1", "http://a b"} {
		require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: addr}}))
		_, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodPost, strings.NewReader("x")))
		require.ErrorContains(t, err, "bad endpoint address", addr)
	}
}

func TestTransportKey(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, says("ok"))
	var asked string
	tr := lbhttp.NewTransport(b, lbhttp.WithKey(func(r *http.Request) string { asked = r.URL.Path; return asked }))
	resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
	require.NoError(t, err)
	require.Equal(t, "ok", text(t, resp))
	require.Equal(t, "/cart", asked)
}

// Many callers, some impatient, some with dead replicas: every slot comes back.
func TestTransportHammer(t *testing.T) { hammer(t) }

// The same, with most queries hedged.
func TestTransportHammerHedged(t *testing.T) {
	hammer(t, lbhttp.WithHedge(time.Millisecond, 100), lbhttp.WithRetryStatus(503))
}

func hammer(t *testing.T, opts ...lbhttp.Option) {
	b := balancer(t, "power_of_two seed=1 choices=2")
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
		w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond)
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	}
	served(t, b, slow, slow, cuts)
	require.NoError(t, b.SetEndpoints(append(b.Endpoints(), host.Endpoint{Name: "dead", Addr: refusing(t)})))
	tr := lbhttp.NewTransport(b, opts...)
	client := &http.Client{Transport: tr}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20))*time.Millisecond)
				method, body := http.MethodGet, io.Reader(nil)
				if random.IntN(2) == 0 {
					method, body = http.MethodPut, strings.NewReader(strings.Repeat("y", random.IntN(100_000)))
				}
				resp, err := client.Do(request(t, method, body).WithContext(ctx))
				if err == nil {
					_, _ = io.CopyN(io.Discard, resp.Body, int64(random.IntN(20_000)))
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return b.Stats().InFlight == 0 }, 5*time.Second, time.Millisecond)
	if s := tr.Stats(); s.HedgeAfter > 0 {
		require.Positive(t, s.HedgesWon)
		require.Positive(t, s.HedgesLost)
	}
}
