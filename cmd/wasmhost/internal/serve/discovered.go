package serve

import (
	"context"

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

// newKeeper drains endpoints that leave until their requests have ended. It is told of those that serve already.
func (w *watch) newKeeper(serving []host.Endpoint) *discovery.Keeper {
	return discovery.NewKeeper(w, discovery.Config{InFlight: w.inFlight, Log: w.log, Serving: serving})
}

// followFile makes the endpoints those of the file, as long as what it returns runs.
func followFile(path string, w *watch) func(context.Context) {
	w.keeper = w.newKeeper(nil)
	return func(ctx context.Context) { _ = w.keeper.Follow(ctx, endpointsFile(path)) } // it ends with its context
}
