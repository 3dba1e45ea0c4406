package serve

import (
	"context"
	"log/slog"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// endpointsFile is a file of --endpoints-file: its addresses must be base URLs.
func endpointsFile(path string) *discovery.File {
	return &discovery.File{Path: path, Check: func(ep host.Endpoint) error {
		_, err := baseURL(ep.Addr)
		return err
	}}
}

// readEndpoints is what the file says at start, when a mistake in it is a reason not to start.
func readEndpoints(path string) ([]Endpoint, error) {
	eps, err := endpointsFile(path).Read()
	if err != nil {
		return nil, err
	}
	var out []Endpoint
	for _, ep := range eps {
		out = append(out, Endpoint{URL: ep.Addr, Name: ep.Name, Weight: ep.Weight, Priority: ep.Priority, Locality: ep.Locality})
	}
	return out, nil
}

// followFile makes the balancer's endpoints those of the file, as long as what it returns runs.
func followFile(path string, b *host.Balancer, h *health, log *slog.Logger) func(context.Context) {
	h.keeper = discovery.NewKeeper(members{b, h}, discovery.Config{InFlight: h.inFlight, Log: log})
	return func(ctx context.Context) { _ = h.keeper.Follow(ctx, endpointsFile(path)) } // it ends with its context
}

// members changes a balancer's endpoints, and forgets the health of those that are gone.
type members struct {
	*host.Balancer
	health *health
}

func (m members) SetEndpoints(eps []host.Endpoint) error {
	if err := m.Balancer.SetEndpoints(eps); err != nil {
		return err
	}
	m.health.retain(eps)
	return nil
}

// inFlight is the number of this proxy's queries that an endpoint has open.
func (h *health) inFlight(endpoint string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.states[endpoint]; s != nil {
		return s.inFlight
	}
	return 0
}

// retain forgets endpoints that are neither among those given nor have queries open.
func (h *health) retain(eps []host.Endpoint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	here := map[string]bool{}
	for _, ep := range eps {
		here[ep.Name] = true
	}
	for name, s := range h.states {
		if !here[name] && s.inFlight == 0 {
			delete(h.states, name)
		}
	}
}
