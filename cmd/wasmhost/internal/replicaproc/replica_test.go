package replicaproc

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func replicaWith(t *testing.T, change func(*Settings)) *Replica {
	t.Helper()
	s := Defaults()
	change(&s)
	r, err := New("a", s, 1)
	require.NoError(t, err)
	return r
}

func call(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestQueueingIsSeenByProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replicaWith(t, func(s *Settings) { s.Slots = 2 }).Handler()
		start := time.Now()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				w := call(h, "GET", "/work", "", WorkHeader, "100000")
				if w.Code != 200 || w.Header().Get("X-Replica") != "a" {
					t.Errorf("got %d from %q", w.Code, w.Header().Get("X-Replica"))
				}
			})
		}
		synctest.Wait()
		require.Equal(t, "6", call(h, "GET", "/prequal/probe", "").Header().Get("X-Prequal-Rif"), "two are served and four wait")
		wg.Wait()
		require.Equal(t, 300*time.Millisecond, time.Since(start))
		probe := call(h, "GET", "/prequal/probe", "")
		require.Equal(t, "0", probe.Header().Get("X-Prequal-Rif"))
		require.NotEmpty(t, probe.Header().Get("X-Prequal-Latency-Us"))
	})
}

func TestNoisyNeighbourStretchesService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replicaWith(t, func(s *Settings) { s.SlowShare, s.SlowFactor = 1, 3 }).Handler()
		start := time.Now()
		call(h, "GET", "/", "", WorkHeader, "10000")
		require.Equal(t, 30*time.Millisecond, time.Since(start))
	})
}

func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replicaWith(t, func(s *Settings) { s.ErrorRate, s.ErrorStatus, s.FailFast = 1, 503, true })
		start := time.Now()
		w := call(r.Handler(), "GET", "/", "", WorkHeader, "10000")
		require.Equal(t, 503, w.Code)
		require.Zero(t, time.Since(start), "fail_fast does no work")
		require.EqualValues(t, 1, r.State().Failed)
	})
}

func TestControl(t *testing.T) {
	r := replicaWith(t, func(*Settings) {})
	h := r.Handler()
	w := call(h, "POST", "/control", `{"slots":2,"service":"7ms"}`)
	require.Equal(t, 200, w.Code)
	var st State
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &st))
	want := Defaults()
	want.Slots, want.Service = 2, Duration(7*time.Millisecond)
	require.Equal(t, want, st.Settings, "what is not named stays")

	for body, reason := range map[string]string{
		`{"slots":0}`:            "slots is 0: give 1 to 10000",
		`{"service":"-1s"}`:      "service is -1s",
		`{"service":40}`:         "a duration is text",
		`{"slow_share":1.5}`:     "slow_share is 1.5: give 0 to 1",
		`{"slow_factor":0.5}`:    "slow_factor is 0.5",
		`{"error_status":200}`:   "error_status is 200: give 400 to 599",
		`{"error_rate":-0.1}`:    "error_rate is -0.1",
		`{"slow_spell":"0s"}`:    "slow_spell is 0s",
		`{"slot":1}`:             "unknown field",
		`nonsense`:               "invalid character",
		`{"slots":2,"slots":-1}`: "slots is -1",
	} {
		w := call(h, "POST", "/control", body)
		require.Equal(t, 400, w.Code, body)
		msg, _ := io.ReadAll(w.Body)
		require.Contains(t, string(msg), reason, body)
	}
	require.Equal(t, want, r.State().Settings, "a refused change changes nothing")
}

func TestClientsWhoLeaveFreeTheirSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replicaWith(t, func(s *Settings) { s.Slots = 1 })
		srv := r.Handler()
		for range 3 {
			req := httptest.NewRequest("GET", "/", nil)
			req.Header.Set(WorkHeader, "60000000")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			srv.ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
			cancel()
		}
		st := r.State()
		require.Zero(t, st.Serving)
		require.Zero(t, st.Waiting)
		require.Zero(t, st.Served)
	})
}

// TestControlIsNotForOtherSites sends what a page of another site could make a browser send. Queries may come from
// anywhere.
func TestControlIsNotForOtherSites(t *testing.T) {
	r := replicaWith(t, func(s *Settings) { s.Service = 0 })
	h := r.Handler()
	require.Equal(t, 403, call(h, "POST", "/control", `{"slots":9}`, "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 4, r.State().Settings.Slots)
	require.Equal(t, 200, call(h, "POST", "/control", `{"slots":9}`).Code)
	require.Equal(t, 9, r.State().Settings.Slots)
	require.Equal(t, 200, call(h, "POST", "/", "", "Sec-Fetch-Site", "cross-site").Code)
	w := call(h, "POST", "/control", "slots=3")
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), "the body is not the JSON expected")
}
