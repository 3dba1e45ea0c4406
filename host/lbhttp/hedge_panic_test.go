package lbhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

// TestHedgePanics: what a hedge panics with reaches the caller, unless there was an answer.
func TestHedgePanics(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []lbhttp.Option
		hedge reply
	}{
		"in the base":    {nil, reply{panics: true}},
		"in retryable":   {[]lbhttp.Option{lbhttp.WithRetries(1, func(r *http.Request, resp *http.Response, err error) bool { panic("on purpose") })}, reply{status: 200}},
		"in the outcome": {[]lbhttp.Option{lbhttp.WithOutcome(func(*http.Response, error) engine.Outcome { panic("on purpose") })}, reply{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hedging(t, 3, c.opts, reply{after: time.Hour}, c.hedge)
				require.PanicsWithValue(t, "on purpose", func() { _, _ = h.tr.RoundTrip(request(t, http.MethodGet, nil)) })
				h.over(t, 0, 0, 0, 2)
			})
		})
	}
	t.Run("in GetBody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedging(t, 3, nil, reply{after: time.Hour})
			req := request(t, http.MethodGet, strings.NewReader("x"))
			req.GetBody = func() (io.ReadCloser, error) { panic("on purpose") }
			require.PanicsWithValue(t, "on purpose", func() { _, _ = h.tr.RoundTrip(req) })
			h.over(t, 0, 0, 0, 1)
		})
	})
	t.Run("of the first attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedging(t, 3, nil, reply{after: 20 * ms, panics: true}, reply{after: time.Hour})
			require.Panics(t, func() { _, _ = h.tr.RoundTrip(request(t, http.MethodGet, nil)) })
			h.over(t, 0, 0, 0, 2)
		})
	})
	t.Run("of an answer's body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedging(t, 3, []lbhttp.Option{lbhttp.WithBase(explosive{})}, reply{})
			resp, err := h.tr.RoundTrip(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			require.Panics(t, func() { _, _ = io.ReadAll(resp.Body) })
			h.over(t, 0, 0, 0, 1)
		})
	})
}

// explosive answers with a body that panics.
type explosive struct{}

func (explosive) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(explosive{})}, nil
}

func (explosive) Read([]byte) (int, error) { panic("on purpose") }
