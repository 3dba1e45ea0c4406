package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAttemptsFromAFile(t *testing.T) {
	c, err := load(t, `
retries: 3
retry_share: 10
retry_least: 0
retry_status: [502, 503]
hedge: 95p
hedge_share: 2
endpoints: [http://127.0.0.1:9001]
`)
	require.NoError(t, err)
	require.Equal(t, Attempts{Retries: 3, RetryShare: 10, RetryLeast: 0, RetryStatus: []int{502, 503}, Hedge: "95p", HedgeShare: 2}, c.Attempts)
	c, err = load(t, "hedge: off\nendpoints: [http://127.0.0.1:9001]\n")
	require.NoError(t, err)
	require.Equal(t, attemptsDefaults(), c.Attempts)
	for text, want := range map[string]string{
		"retries: 33":              "--retries is 33: give 0 to 32",
		"retries: -1":              "--retries is -1: give 0 to 32",
		"retry_share: 101":         "--retry-share is 101: give 0 to 100",
		"retry_least: 1000001":     "--retry-least is 1000001: give 0 to 1000000",
		"retry_status: [200]":      "--retry-status has 200: give statuses of 400 to 599",
		"retry_status: [503, 600]": "--retry-status has 600: give statuses of 400 to 599",
		"retry_status: 503":        `:1: "503" is not a list of whole numbers`,
		"retry_status: [x]":        `:1: "x" is not a whole number`,
		"hedge: 99p":               `--hedge is "99p": give off, 95p, or a time of 1ms to 1m0s`,
		"hedge: 0s":                `--hedge is "0s": give off`,
		"hedge: -1ns":              `--hedge is "-1ns": give off`,
		"hedge: 999us":             `--hedge is "999us": give off`,
		"hedge: 61s":               `--hedge is "61s": give off`,
		"hedge_share: 101":         "--hedge-share is 101: give 0 to 100",
	} {
		_, err := load(t, text+"\nendpoints: [http://127.0.0.1:9001]\n")
		require.ErrorContains(t, err, want, text)
	}
}

// TestAttemptsServe has a replica that is busy and one that hangs beside a good one: with the settings for it clients see
// neither, and the operator sees why.
func TestAttemptsServe(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	var hung atomic.Int64
	handlers := []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(_ http.ResponseWriter, r *http.Request) {
			hung.Add(1)
			select {
			case <-over:
			case <-r.Context().Done():
			}
		},
		func(http.ResponseWriter, *http.Request) {},
	}
	var urls []string
	for _, h := range handlers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		urls = append(urls, s.URL)
	}
	b := balancerOf(t, "round_robin seed=1", urls...)
	w := watchOf(t, b)
	c := Config{Attempts: Attempts{Retries: 2, RetryShare: 100, RetryStatus: []int{503}, Hedge: "20ms", HedgeShare: 100}}
	proxy := fleetOf(c, b, &engines{}, w)
	for range 9 {
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, 200, rec.Code)
	}
	require.Positive(t, hung.Load())
	require.Eventually(t, func() bool { return b.InFlight() == 0 }, 5*time.Second, time.Millisecond)
	h := newAdmin(proxy, new(atomic.Bool), nil, "")
	_, body := ask(h, "GET", "/pool", "")
	var v struct{ Attempts map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.Equal(t, map[string]any{
		"retries": 2., "retry_share": 100., "retry_least": 0., "retry_status": []any{503.}, "hedge": "20ms", "hedge_share": 100.,
		"hedge_after_ms": 20., "retries_refused": 0., "hedges_refused": 0.,
		"retried": float64(w.attempts.stats().Retries), "hedges_won": float64(w.attempts.stats().HedgesWon), "hedges_lost": float64(w.attempts.stats().HedgesLost),
	}, v.Attempts)
	require.Positive(t, w.attempts.stats().Retries)
	require.Positive(t, w.attempts.stats().HedgesWon)
	_, metrics := ask(h, "GET", "/metrics", "")
	require.Regexp(t, `headroom_retries_total\{result="made"\} [1-9]`, metrics)
	require.Contains(t, metrics, `headroom_retries_total{result="refused"} 0`)
	require.Regexp(t, `headroom_hedges_total\{result="won"\} [1-9]`, metrics)
	require.Contains(t, metrics, `headroom_hedges_total{result="lost"}`)
	require.Contains(t, metrics, `headroom_hedges_total{result="refused"} 0`)
}

// TestNoAttemptsButTheFirst: what is off is off, and the first answer is passed on.
func TestNoAttemptsButTheFirst(t *testing.T) {
	var asked atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	for name, c := range map[string]Attempts{"by default": attemptsDefaults(), "none": {Hedge: HedgeOff, RetryStatus: []int{503}}} {
		b := balancerOf(t, "round_robin seed=1", busy.URL, busy.URL+"/b")
		w := watchOf(t, b)
		asked.Store(0)
		rec := httptest.NewRecorder()
		newProxy(b, w, Config{Attempts: c}, slog.New(slog.DiscardHandler)).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, http.StatusServiceUnavailable, rec.Code, name)
		require.EqualValues(t, 1, asked.Load(), name)
		require.Nil(t, w.attempts.view().HedgeAfterMS)
	}
}
