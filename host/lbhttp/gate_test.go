package lbhttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/health"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

var _ lbhttp.Gate = (*health.Monitor)(nil)

// gatekeeper refuses some endpoints, numbers its permits, and holds that each comes back once.
type gatekeeper struct {
	mu      sync.Mutex
	refused map[string]bool
	given   uint64
	open    map[uint64]string
	heard   []string
}

func (g *gatekeeper) Admit(endpoint string) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[endpoint] {
		return 0, false
	}
	if g.open == nil {
		g.open = map[uint64]string{}
	}
	g.given++
	g.open[g.given] = endpoint
	return g.given, true
}

func (g *gatekeeper) Report(endpoint string, permit uint64, o engine.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[permit] != endpoint {
		panic(fmt.Sprintf("permit %d of %s is not open", permit, endpoint))
	}
	delete(g.open, permit)
	g.heard = append(g.heard, endpoint+" "+o.String())
}

func TestGateKeepsQueriesAway(t *testing.T) {
	b := balancer(t, "round_robin seed=0")
	good := server(t, says("ok"))
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "shut", Addr: good.URL}, {Name: "good", Addr: good.URL}, {Name: "dead", Addr: refusing(t)}}))
	g := &gatekeeper{refused: map[string]bool{"shut": true}}
	tr := lbhttp.NewTransport(b, lbhttp.WithGate(g))
	for range 6 {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		require.Len(t, g.open, 1, "the body is open")
		require.Equal(t, "ok", text(t, resp))
	}
	require.Empty(t, g.open)
	require.Contains(t, g.heard, "dead failure")
	require.Contains(t, g.heard, "good success")
	require.NotContains(t, g.heard, "shut success")

	g.refused["good"] = true
	g.refused["dead"] = true
	_, err := tr.RoundTrip(request(t, http.MethodGet, nil))
	require.ErrorIs(t, err, lbhttp.ErrNotPlaced)
	require.ErrorIs(t, err, engine.ErrNoneEligible)
	require.Zero(t, b.InFlight())

	g.refused = map[string]bool{"shut": true, "good": true}
	_, err = tr.RoundTrip(request(t, http.MethodGet, nil))
	var failed *lbhttp.Error
	require.ErrorAs(t, err, &failed, "a retry that is refused everywhere leaves the answer there is")
	require.Equal(t, 1, failed.Attempts)
}

// TestGateRefusesALargeFleet refuses more endpoints than a query may have tried.
func TestGateRefusesALargeFleet(t *testing.T) {
	b := balancer(t, "random seed=1")
	g := &gatekeeper{refused: map[string]bool{}}
	eps := make([]host.Endpoint, 3*engine.MaxTried)
	for i := range eps {
		eps[i] = host.Endpoint{Name: fmt.Sprint(i), Addr: "http://127.0.0.1:1"}
		g.refused[eps[i].Name] = true
	}
	require.NoError(t, b.SetEndpoints(eps))
	_, err := lbhttp.NewTransport(b, lbhttp.WithGate(g)).RoundTrip(request(t, http.MethodGet, nil))
	require.ErrorIs(t, err, lbhttp.ErrNotPlaced)
	require.ErrorIs(t, err, engine.ErrNoneEligible)
	require.Zero(t, b.InFlight())
}

// TestPermitsComeBack ends attempts in every way there is.
func TestPermitsComeBack(t *testing.T) {
	for name, opt := range map[string]lbhttp.Option{
		"base panics":    lbhttp.WithBase(panicking{}),
		"outcome panics": lbhttp.WithOutcome(func(*http.Response, error) engine.Outcome { panic("on purpose") }),
		"no answer":      lbhttp.WithBase(answerless{}),
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer(t, "random seed=1")
			require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: refusing(t)}}))
			g := &gatekeeper{}
			func() {
				defer func() { _ = recover() }()
				_, _ = lbhttp.NewTransport(b, lbhttp.WithGate(g), opt).RoundTrip(request(t, http.MethodGet, nil))
			}()
			require.Empty(t, g.open)
			require.Len(t, g.heard, 1)
			require.Zero(t, b.InFlight())
		})
	}
}

type answerless struct{}

func (answerless) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }

// TestOutcomesReachTheMonitor lets a replica fail until its circuit opens: a balancer that is not told still sends
// nothing there.
func TestOutcomesReachTheMonitor(t *testing.T) {
	b := balancer(t, "round_robin seed=1")
	good, bad := server(t, says("ok")), atomic.Int64{}
	sick := server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		bad.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	require.NoError(t, b.SetEndpoints([]host.Endpoint{{Name: "a", Addr: good.URL}, {Name: "b", Addr: good.URL}, {Name: "sick", Addr: sick.URL}}))
	m, err := health.New(health.Config{Circuit: &health.Circuit{}}, func([]health.Verdict) {})
	require.NoError(t, err)
	require.NoError(t, m.SetEndpoints([]string{"a", "b", "sick"}, func([]health.Verdict) error { return nil }))
	tr := lbhttp.NewTransport(b, lbhttp.WithGate(m))
	for range 60 {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, nil))
		require.NoError(t, err)
		_ = resp.Body.Close()
	}
	require.EqualValues(t, 5, bad.Load())
}
