package serve

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// failuresToWarn is how many probes or queries of one endpoint fail in a row before that is logged.
const failuresToWarn = 3

// health keeps what the last probes and queries of each endpoint said, for GET /pool, and logs one line when an
// endpoint starts to fail and one when it answers again. It places nothing: that is the policy's business.
type health struct {
	log    *slog.Logger
	keeper *discovery.Keeper // of the endpoints, where they are followed; nil for none
	mu     sync.Mutex
	states map[string]*endpointHealth
}

type endpointHealth struct {
	probes, queries int // failures in a row
	failing         bool
	inFlight        int64
	probedAt        time.Time
	probeErr        error
}

func newHealth(log *slog.Logger, endpoints []Endpoint) *health {
	h := &health{log: log, states: map[string]*endpointHealth{}}
	for _, e := range endpoints {
		h.states[e.Name] = &endpointHealth{}
	}
	return h
}

// probing passes probes on and keeps their results.
func (h *health) probing(next host.ProbeFunc) host.ProbeFunc {
	return func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		rd, err := next(ctx, ep)
		if errors.Is(err, context.Canceled) {
			return rd, err // the proxy is stopping
		}
		h.change(ep.Name, err, func(s *endpointHealth) {
			s.probedAt, s.probeErr = time.Now(), err
			s.probes++
			if err == nil {
				s.probes, s.queries = 0, 0 // what answers probes can be reached
			}
		})
		return rd, err
	}
}

// Sent, Answered and Ended make it an lbhttp.Watcher.
func (h *health) Sent(endpoint string) {
	h.change(endpoint, nil, func(s *endpointHealth) { s.inFlight++ })
}

func (h *health) Ended(endpoint string) {
	h.change(endpoint, nil, func(s *endpointHealth) { s.inFlight-- })
}

func (h *health) Answered(endpoint string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // the caller's doing
	}
	h.change(endpoint, err, func(s *endpointHealth) {
		s.queries++
		if err == nil {
			s.queries = 0
		}
	})
}

// unreachable says that a connection could not be made: there is no need to wait for more.
func (h *health) unreachable(endpoint string, err error) {
	h.change(endpoint, err, func(s *endpointHealth) { s.queries = max(s.queries, failuresToWarn) })
}

// change applies f and logs if that makes the endpoint start or stop failing.
func (h *health) change(endpoint string, err error, f func(*endpointHealth)) {
	h.mu.Lock()
	s := h.states[endpoint]
	if s == nil {
		s = &endpointHealth{}
		h.states[endpoint] = s
	}
	was := s.failing
	f(s)
	s.failing = s.probes >= failuresToWarn || s.queries >= failuresToWarn
	is := s.failing
	h.mu.Unlock()
	switch {
	case is && !was:
		h.log.Warn("endpoint fails; it is tried again until it answers", "endpoint", endpoint, "error", err)
	case was && !is:
		h.log.Info("endpoint answers again", "endpoint", endpoint)
	}
}

// probeView is the last probe of an endpoint.
type probeView struct {
	OK    bool    `json:"ok"`
	Error string  `json:"error,omitempty"`
	AgeMS float64 `json:"age_ms"`
}

// show fills in what is known of an endpoint.
func (h *health) show(v *endpointView) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.states[v.Name]
	if s == nil {
		return
	}
	v.InFlight, v.Failing = s.inFlight, s.failing
	if s.probedAt.IsZero() {
		return
	}
	v.LastProbe = &probeView{OK: s.probeErr == nil, AgeMS: float64(time.Since(s.probedAt)) / 1e6}
	if s.probeErr != nil {
		v.LastProbe.Error = s.probeErr.Error()
	}
}
