package replica_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/replica"
)

var discard = log.New(io.Discard, "", 0)

func TestProbeHandler(t *testing.T) {
	m := monitor(t)
	for range 3 {
		q := m.Begin()
		defer q.Withdraw()
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		w := httptest.NewRecorder()
		m.ProbeHandler().ServeHTTP(w, httptest.NewRequest(method, replica.DefaultPath, nil))
		require.Equal(t, 200, w.Code)
		require.Equal(t, http.Header{
			"Cache-Control":         {"no-store"},
			"X-Prequal-Rif":         {"3"},
			"Endpoint-Load-Metrics": {"TEXT named_metrics.rif=3"},
		}, w.Header(), "latency is left out while unknown")
		require.Empty(t, w.Body.String())
	}
	w := httptest.NewRecorder()
	m.ProbeHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, replica.DefaultPath, nil))
	require.Equal(t, 405, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

func TestSetHeaders(t *testing.T) {
	for latency, want := range map[engine.Duration]string{
		0: "1", 1: "1", 1000: "1", 1001: "2", 2_000_000: "2000", engine.MaxLatency: "144115188075856",
	} {
		h := http.Header{}
		replica.SetHeaders(h, engine.Reading{RIF: 1<<32 - 1, Latency: latency})
		require.Equal(t, http.Header{
			"X-Prequal-Rif":         {"4294967295"},
			"X-Prequal-Latency-Us":  {want},
			"Endpoint-Load-Metrics": {"TEXT named_metrics.rif=4294967295,named_metrics.latency_us=" + want},
		}, h)
		h.Add(replica.HeaderRIF, "more")
		require.Equal(t, want, h.Get(replica.HeaderLatency), "the values share an array but not their room")
		replica.SetHeaders(h, engine.Reading{Latency: engine.UnknownLatency})
		require.Equal(t, http.Header{"X-Prequal-Rif": {"0"}, "Endpoint-Load-Metrics": {"TEXT named_metrics.rif=0"}}, h)
	}
}

// Probes inside the middleware are not counted, at the known path and at any other.
func TestProbeIsNotCounted(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		opts []replica.Option
	}{
		"default path": {replica.DefaultPath, nil},
		"told path":    {"/load", []replica.Option{replica.WithProbePath("/load")}},
		"other path":   {"/load", nil},
		"piggybacked":  {"/load", []replica.Option{replica.WithPiggyback()}},
	} {
		t.Run(name, func(t *testing.T) {
			m := monitor(t, c.opts...)
			mux := http.NewServeMux()
			mux.Handle(c.path, m.ProbeHandler())
			h := wrapped{m.Middleware(wrapped{mux})}
			other := m.Begin()
			for range 3 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
				require.Equal(t, 200, w.Code)
				require.Equal(t, "1", w.Header().Get(replica.HeaderRIF))
				require.Empty(t, w.Header().Get(replica.HeaderLatency), "a probe is no latency sample")
			}
			other.Withdraw()
			require.Equal(t, uint32(0), m.RIF())
		})
	}
}

// wrapped hides the writer behind another middleware's, as real chains do.
type wrapped struct{ http.Handler }

type shell struct{ http.ResponseWriter }

func (s shell) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (m wrapped) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.Handler.ServeHTTP(shell{w}, r) }

// Two monitors may stand one inside the other; a probe leaves only its own.
func TestProbeOfTheOtherMonitor(t *testing.T) {
	outer, inner := monitor(t), monitor(t)
	h := outer.Middleware(inner.Middleware(outer.ProbeHandler()))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/load", nil))
	require.Equal(t, "0", w.Header().Get(replica.HeaderRIF))
	require.Equal(t, uint32(0), outer.RIF())
	require.Equal(t, uint32(0), inner.RIF())
}

func TestProbeAnsweredWhileSaturated(t *testing.T) {
	const stuck = 200
	m := monitor(t)
	var inside, done sync.WaitGroup
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, m.ProbeHandler())
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { inside.Done(); <-release })
	s := quiet(t, m.Middleware(mux))
	inside.Add(stuck)
	for range stuck {
		done.Go(func() {
			if resp, err := s.Client().Get(s.URL + "/work"); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	inside.Wait()
	var probes sync.WaitGroup
	for range 50 {
		probes.Go(func() {
			client := &http.Client{Timeout: 5 * time.Second}
			resp, err := client.Get(s.URL + replica.DefaultPath)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			if got := resp.Header.Get(replica.HeaderRIF); got != "200" {
				t.Errorf("RIF %s with %d stuck and 50 probes at once", got, stuck)
			}
		})
	}
	probes.Wait()
	close(release)
	done.Wait()
	rifReturnsToZero(t, m)
}

func BenchmarkProbeHandler(b *testing.B) {
	m := monitor(b)
	for range 100 {
		q := m.Begin()
		q.Finish()
	}
	h, r := m.ProbeHandler(), httptest.NewRequest(http.MethodGet, replica.DefaultPath, nil)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
