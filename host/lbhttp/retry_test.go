package lbhttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestRetryMovesOnFromDeadReplicas(t *testing.T) {
	for name, body := range map[string]func() io.Reader{
		"no body":         func() io.Reader { return nil },
		"with GetBody":    func() io.Reader { return strings.NewReader("payload") },
		"without GetBody": func() io.Reader { return &closing{Reader: strings.NewReader("payload")} },
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "round_robin seed=1")
			served(t, b, echo)
			alive := b.Endpoints()[0]
			require.NoError(t, b.SetEndpoints([]host.Endpoint{
				{Name: "dead", Addr: refusing(t)}, alive, {Name: "nonsense", Addr: "ftp://x"},
			}))
			for range 9 {
				resp, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodPost, body()))
				require.NoError(t, err)
				if name == "no body" {
					require.Empty(t, text(t, resp))
				} else {
					require.Equal(t, "payload", text(t, resp))
				}
			}
			s := b.Stats()
			require.Equal(t, uint64(9), s.Outcomes[0])
			require.NotZero(t, s.Outcomes[1])
		})
	}
}

func TestRetryExcludesAndGivesUp(t *testing.T) {
	b := balancer(t, "random seed=1")
	dead := refusing(t)
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: dead}, {Name: "b", Addr: dead}}))
	var failed *lbhttp.Error
	for range 20 {
		_, err := lbhttp.NewTransport(b, lbhttp.WithRetries(10, nil)).RoundTrip(request(t, http.MethodGet, nil))
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 2, failed.Attempts, "each replica once, then nobody is left")
		require.NotErrorIs(t, err, lbhttp.ErrNotPlaced)
		require.ErrorContains(t, err, "refused")
	}
	outcomes(t, b, 0, 40, 0, 0)

	var eps []host.Endpoint
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		eps = append(eps, host.Endpoint{Name: name, Addr: dead})
	}
	require.NoError(t, b.SetEndpoints(eps))
	for opt, want := range map[*lbhttp.Option]int{
		ptr(lbhttp.WithRetries(0, nil)): 1, ptr(lbhttp.WithRetries(-1, nil)): 1,
		ptr(lbhttp.WithRetries(4, nil)): 5, ptr(lbhttp.WithKey(nil)): 3,
	} {
		_, err := lbhttp.NewTransport(b, *opt).RoundTrip(request(t, http.MethodGet, nil))
		require.ErrorAs(t, err, &failed)
		require.Equal(t, want, failed.Attempts)
	}
}

func ptr(o lbhttp.Option) *lbhttp.Option { return &o }

// A connection that breaks before the answer: the replica may have acted, so that only requests
// that may be repeated are.
func TestRetryAfterReset(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		key    bool
		again  bool
	}{
		"GET":                                 {method: http.MethodGet, again: true},
		"DELETE":                              {method: http.MethodDelete, again: true},
		"PUT that can be replayed":            {http.MethodPut, strings.NewReader("payload"), false, true},
		"PUT that cannot":                     {http.MethodPut, io.NopCloser(strings.NewReader("payload")), false, false},
		"POST":                                {http.MethodPost, strings.NewReader("payload"), false, false},
		"POST with a key":                     {http.MethodPost, strings.NewReader("payload"), true, true},
		"POST with a key, not to be replayed": {http.MethodPost, io.NopCloser(strings.NewReader("payload")), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "round_robin seed=1")
			var reached atomic.Int32
			first := func(w http.ResponseWriter, r *http.Request) {
				if reached.Add(1) == 1 {
					cuts(w, r)
					return
				}
				echo(w, r)
			}
			served(t, b, first, first)
			req := request(t, c.method, c.body)
			if c.key {
				req.Header.Set("Idempotency-Key", "7")
			}
			resp, err := lbhttp.NewTransport(b).RoundTrip(req)
			if !c.again {
				require.Error(t, err)
				require.Equal(t, int32(1), reached.Load())
				outcomes(t, b, 0, 1, 0, 0)
				return
			}
			require.NoError(t, err)
			got := text(t, resp)
			if c.body != nil {
				require.Equal(t, "payload", got)
			}
			outcomes(t, b, 1, 1, 0, 0)
		})
	}
}

// The caller's own body fails: nobody else is blamed or bothered.
func TestRetryNotForTheCallersBody(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, echo, echo)
	gone := errors.New("the uploader left")
	body := io.NopCloser(io.MultiReader(strings.NewReader("some"), failing{gone}))
	_, err := lbhttp.NewTransport(b).RoundTrip(request(t, http.MethodPut, body))
	require.ErrorIs(t, err, gone)
	outcomes(t, b, 0, 0, 0, 1)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRetryOnResponse(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	served(t, b, status(503), echo)
	on503 := lbhttp.WithRetries(3, func(_ *http.Request, resp *http.Response, err error) bool {
		return err == nil && resp.StatusCode == 503
	})
	for range 4 {
		resp, err := lbhttp.NewTransport(b, on503).RoundTrip(request(t, http.MethodPost, strings.NewReader("payload")))
		require.NoError(t, err)
		require.Equal(t, "payload", text(t, resp))
	}
	require.Equal(t, uint64(4), b.Stats().Outcomes[0])
	require.NotZero(t, b.Stats().Outcomes[1])

	t.Run("nobody else", func(t *testing.T) {
		b := balancer(t, "round_robin seed=1")
		served(t, b, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
		body := &closing{Reader: strings.NewReader("payload")}
		resp, err := lbhttp.NewTransport(b, on503).RoundTrip(request(t, http.MethodPost, body))
		require.NoError(t, err)
		require.Equal(t, "busy\n", text(t, resp), "the last answer stands")
		outcomes(t, b, 0, 1, 0, 0)
	})
}

// A base transport may close and even read the body after it has returned an error.
func TestRetryWithAnUntidyBase(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	served(t, b, echo, echo)
	late := make(chan error, 1)
	base := &untidy{late: late}
	retryAll := lbhttp.WithRetries(1, func(_ *http.Request, _ *http.Response, err error) bool { return err != nil })
	body := &closing{Reader: strings.NewReader("payload")}
	resp, err := lbhttp.NewTransport(b, lbhttp.WithBase(base), retryAll).RoundTrip(request(t, http.MethodPost, body))
	require.NoError(t, err)
	require.Equal(t, "payload", text(t, resp))
	require.ErrorIs(t, <-late, http.ErrBodyReadAfterClose)
	require.True(t, body.closed)
}

type untidy struct {
	calls atomic.Int32
	late  chan error
}

func (u *untidy) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.calls.Add(1) > 1 {
		return http.DefaultTransport.RoundTrip(r)
	}
	_ = r.Body.Close()
	go func() {
		_, err := r.Body.Read(make([]byte, 100))
		u.late <- err
	}()
	return nil, errors.New("lost")
}

// An answer may come before the body was wanted; the caller's body is closed all the same.
func TestBodyIsClosedWithoutBeingRead(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, echo)
	for name, base := range map[string]http.RoundTripper{
		"before the answer": hasty{false}, "after it": hasty{true},
	} {
		body := &closing{Reader: strings.NewReader("payload")}
		resp, err := lbhttp.NewTransport(b, lbhttp.WithBase(base)).RoundTrip(request(t, http.MethodPost, body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.True(t, body.closed, name)
	}
}

type hasty struct{ late bool }

func (h hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 413, Header: http.Header{}, Body: http.NoBody}
	if h.late {
		resp.Body = closer{r.Body}
		return resp, nil
	}
	return resp, r.Body.Close()
}

// closer is an empty answer that closes the request's body with itself.
type closer struct{ request io.Closer }

func (closer) Read([]byte) (int, error) { return 0, io.EOF }
func (c closer) Close() error           { return c.request.Close() }

func TestRetryWhenTheBodyCannotBeHadAgain(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	served(t, b, cuts, cuts)
	body := &closing{Reader: strings.NewReader("payload")}
	req := request(t, http.MethodPut, body)
	req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	_, err := lbhttp.NewTransport(b).RoundTrip(req)
	var failed *lbhttp.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Attempts)
	require.True(t, body.closed)
	require.Equal(t, uint64(1), b.Stats().Outcomes[1])
}

// Whatever panics, the slot comes back.
func TestPanicsLeakNoPlacement(t *testing.T) {
	b := balancer(t, "random seed=1")
	served(t, b, says("ok"))
	for name, opt := range map[string]lbhttp.Option{
		"base":      lbhttp.WithBase(panicking{}),
		"retryable": lbhttp.WithRetries(1, func(*http.Request, *http.Response, error) bool { panic("on purpose") }),
		"key":       lbhttp.WithKey(func(*http.Request) string { panic("on purpose") }),
	} {
		require.Panics(t, func() { _, _ = lbhttp.NewTransport(b, opt).RoundTrip(request(t, http.MethodGet, nil)) }, name)
		require.Zero(t, b.Stats().InFlight, name)
	}
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("on purpose") }
